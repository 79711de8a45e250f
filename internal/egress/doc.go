// Package egress connects to where tenants say: Git servers and forges.
//
// In go a host and a port that somebody wrote into an object, out comes a
// connection, or a NotAllowedError before anything was sent. A host may be at
// public addresses, and beyond them only where an administrator has allowed it: else
// whoever may write a GitRepository could look around in the network of the
// control plane. Every connection is judged by the addresses that its host has at
// that moment, and made to one of those: what a name leads to later, or a redirect
// says, is judged again.
//
// Proxies of the environment (HTTP_PROXY and others) are not used: behind one it is
// the proxy that resolves, and nothing could be judged here.
//
// Faults come in words of this package's own. It shows nothing of what was answered.
package egress
