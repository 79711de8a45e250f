// Package storetest lets the tests of a package have servers one after the other that are
// as new, without a start for each.
//
// In goes what starts a server; out comes one that no other test has, and whose store
// holds what it did after its start. What a test wrote is put back in the store itself,
// whatever finalizers say, and servers see it as they see what others write. What
// a server has in memory of its own stays: a test that stops its server, or counts on its
// start, has one of its own. The package knows no kinds.
package storetest
