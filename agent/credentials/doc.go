// Package credentials keeps the certificate by which a cluster's agent is known to
// its hub good.
//
// In go the connection to the hub as its kubeconfig has it, and who keeps that;
// out come the same connection with a certificate that is exchanged while it is in
// use, and a kubeconfig that holds the latest. The next certificate is asked for
// when two thirds of the life of this one are over, by the hub's clock; and after
// it has expired, for as long as the hub grants that. Of a kubeconfig that somebody
// replaces the certificate and the hub's authority are taken over, and what else it
// says stays in it. Credentials that are no certificate of an agent are left
// as they are. No error and no log holds a key.
package credentials
