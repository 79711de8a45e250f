// Package kubelet answers for the containers of a simulated member: logs, exec,
// attach and port-forward, as an API server asks a kubelet for them.
//
// In go a listener and certificates; out comes a server that speaks the protocols
// of real kubelets for containers that do not exist: their logs say so, a handful
// of commands work in them, and their ports answer to HTTP. Nothing of the
// machine is run, read or reached, whoever asks for it.
package kubelet
