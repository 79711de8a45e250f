// Package gitserver serves bare Git repositories of one folder over HTTP on
// loopback, by the git program's own http-backend: what the demo, the
// whole-system tests and the benchmark use as "a Git server".
//
// In go a folder and an address; out come clone URLs. It knows no users: who
// reaches the address may read and push. It is not meant to be reached from
// another machine.
package gitserver
