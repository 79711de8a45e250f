// Package etcd is the store of one server, run inside its process.
//
// In goes a folder; out comes an endpoint that only this machine's owner of that
// folder can reach, and the store's revision, by which tests and benchmarks
// count writes. The package keeps one member and compacts nothing: the API
// server that uses it does.
package etcd
