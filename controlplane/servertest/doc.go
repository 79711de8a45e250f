// Package servertest gives a test the real control plane: store, API server,
// kinds, admission and housekeeping, in the test's own process.
//
// In goes a test; out comes a server with clients of it, on a free port, that
// ends with the test. Tests of one program may share a server; each has its
// namespaces. The package fakes nothing but durability: its store does not wait
// for the disk.
package servertest
