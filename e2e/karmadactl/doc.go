// Package karmadactl has a cluster registered as karmadactl does, and served by an agent
// that speaks as Karmada's; and it takes clusters over that Karmada has left, and gives
// them back, by the commands of docs/from-karmada.md.
//
// It runs a control plane with --allow-karmadactl-register, and one for the page. The programs must be built
// before (make build). With -short the package does nothing.
package karmadactl
