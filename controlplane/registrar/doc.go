// Package registrar has Karmada's own clients register clusters and be their agents:
// karmadactl register, and the agent that it installs.
//
// In go requests of two users. What karmadactl's maker of rights (identity.Generator)
// asks for is looked at and answered, and stored nowhere: it may ask for the rights of
// one agent of a cluster that is not in the fleet, and the control plane gives those
// that its agents have, once the certificate of that one is approved. An agent that
// lists or watches all Clusters gets its own, and it holds the Lease by which Karmada's
// are one of several. No role grants any of this: with the package gone from the
// server, it is gone.
package registrar
