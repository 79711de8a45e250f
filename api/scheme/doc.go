// Package scheme puts all kinds that Flotilla works with into one
// runtime.Scheme: its own, Karmada's, Flux's and those of Kubernetes.
//
// Nothing goes in and a new scheme comes out on each call. It holds no global
// scheme and imports no client.
package scheme
