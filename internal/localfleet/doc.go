// Package localfleet runs a whole fleet on this machine, as processes: a
// control plane, member clusters and a Git server. The demo, the whole-system
// tests and the benchmark stand on it.
//
// In go the path of flotillad and a folder; out come kubeconfigs and handles to
// stop, kill or pause each process. It talks to loopback only and never leaves
// a process behind.
package localfleet
