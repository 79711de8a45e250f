// Package etcd runs the store of one server inside the server's process.
//
// In goes a folder; out come an endpoint that only the owner of the folder on this machine
// can reach, and the store's revision, by which tests and benchmarks count writes. The
// package runs one member. Regular compaction is up to the API server; only Relieve
// compacts, when the store is full.
package etcd
