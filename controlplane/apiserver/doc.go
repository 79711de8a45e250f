// Package apiserver builds one Kubernetes-compatible API server inside this
// process: aggregator, kube-apiserver, an extension of ours, and custom
// resources, chained by delegation behind one port.
//
// In go addresses, certificates and a store; out comes a server that runs until
// its context ends, and a client configuration that speaks to it with all
// rights. The control plane and every simulated member are the same chain, with
// and without an extension. The package runs no controller and keeps no file
// but the server's own settings. Feature gates are of the process: servers that
// share one share them.
package apiserver
