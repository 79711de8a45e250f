// Package registration makes a cluster in pull mode a member of a fleet: it finds
// and verifies the control plane by a bootstrap token, requests the certificate
// of the cluster's agent, and the next one before or after that has expired.
//
// In go a token, the name of a cluster and the address of the control plane; out
// come connections, certificates with their keys, and kubeconfigs. No error
// contains a token or a key. The package writes no file and prints nothing.
package registration
