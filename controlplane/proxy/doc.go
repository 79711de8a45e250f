// Package proxy serves the sub-resource proxy of Cluster: requests to a member
// through the hub, as the caller.
//
// In go an authenticated request and, read as needed, the Cluster and its two
// Secrets; out comes the member's answer, or a Status that names the cluster.
// A member learns the caller by impersonation, with the token that may do nothing
// else; the token that the hub itself acts with carries no request of a user.
//
// The request to a member is built anew: its path is checked, and of the caller's
// headers none is passed on that identifies the caller, and no hop-by-hop one. An answer
// leads nowhere else: redirects are not followed, and nothing is set on the
// caller's side, such as cookies. Credentials are sent only where the certificate is one of the
// cluster's, never to a link-local or metadata address, and requests only to the
// cluster whose identity was registered. The package writes to no store.
package proxy
