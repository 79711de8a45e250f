// Package proxy serves the sub-resource proxy of Cluster: requests to a member
// through the hub, as the caller.
//
// In go an authenticated request and, read as needed, the Cluster and its two
// Secrets; out comes the member's answer, or a Status that names the cluster.
// A member hears who asks by impersonation with the token that may do nothing
// else; the token that the hub itself acts with carries no request of a user.
//
// What leaves for a member is made new: its path is checked, and of the caller's
// headers none that says who he is, nor one that is meant for a hop. What comes
// back leads nowhere else: redirects are not followed, and nothing is set on the
// caller's side. Credentials go only where the certificate is one of the
// cluster's, to no link-local or metadata address, and requests only to the
// cluster whose identity was registered. The package writes to no store.
package proxy
