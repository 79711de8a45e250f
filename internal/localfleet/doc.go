// Package localfleet runs a whole fleet on this machine, as processes: a
// control plane, member clusters and a Git server. The demo, the whole-system
// tests and the benchmark stand on it.
//
// In go the paths of programs and a folder; out come kubeconfigs, handles to stop,
// kill or pause each process, and links between them that can be cut. It talks to
// loopback only and never leaves a process behind.
package localfleet
