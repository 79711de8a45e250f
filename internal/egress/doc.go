// Package egress connects to hosts that tenants name: Git servers and forges.
//
// In go a host and a port that somebody wrote into an object, out comes a
// connection, or a NotAllowedError before anything was sent. A host may be at
// public addresses, and at others only where an administrator has allowed it: otherwise
// whoever may write a GitRepository could scan the network of the
// control plane. Every connection is judged by the addresses that its host has at
// that moment, and made to one of those: where a name resolves to later, or a redirect
// leads, is judged again.
//
// Proxies are used where an administrator names them in the environment of the control plane, or a tenant in a Secret. The
// administrator's own address is not judged, a tenant's is like any other. A host behind either is refused as ever if it is an
// address that is not allowed, or a name that leads to one here; a name that is not known here is for the proxy to find. So a
// proxy must not reach from the network of the control plane what tenants are not to reach.
//
// Errors have texts of this package's own, and contain nothing of the answer.
package egress
