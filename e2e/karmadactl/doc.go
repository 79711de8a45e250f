// Package karmadactl has a cluster registered as karmadactl does, and served by an agent
// that speaks as Karmada's.
//
// It runs a control plane with --allow-karmadactl-register. The programs must be built
// before (make build). With -short the package does nothing.
package karmadactl
