// Package credentials keeps the client certificate valid with which a cluster's agent
// authenticates to its hub.
//
// In go the kubeconfig that leads to the hub, and the Store that keeps it;
// out come the same connection with a certificate that is rotated while it is in
// use, and a kubeconfig with the latest one. The next certificate is requested
// when two thirds of the lifetime of this one are over, by the hub's clock; and after
// it has expired, for as long as the hub grants that. From a kubeconfig that somebody
// replaces, the certificate and the CA bundle are adopted, and the rest of its content
// is kept. Credentials that are not an agent's certificate are used
// as they are. No error and no log holds a key.
package credentials
