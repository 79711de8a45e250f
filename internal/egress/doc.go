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
// Proxies of the environment (HTTP_PROXY and others) are not used: behind one it is
// the proxy that resolves, and nothing could be judged here.
//
// Errors have texts of this package's own, and contain nothing of the answer.
package egress
