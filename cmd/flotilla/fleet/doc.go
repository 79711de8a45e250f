// Package fleet connects the commands of the command line to the control plane and, through it,
// to the member clusters.
//
// In go flags and kubeconfigs; out come clients, kubectl's factories for the hub and for any
// member, cluster names, and errors that explain what to do. It prints nothing and defines no
// command.
package fleet
