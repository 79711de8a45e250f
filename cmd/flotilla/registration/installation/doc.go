// Package installation installs the agent of a cluster in pull mode in that cluster, and removes
// it.
//
// In go a client of the member and the agent's kubeconfig for the control plane; out come a
// namespace, an account with its rights, a Secret with the kubeconfig, and a Deployment. It may
// be run again, and then updates existing objects. The package sends nothing to the control
// plane, and never prints the content of the Secret.
package installation
