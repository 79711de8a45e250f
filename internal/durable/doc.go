// Package durable writes files that a cut of the power does not take back.
//
// In go a path and content; what comes out is there as it was, or as it is now, and
// once a call has returned, as it is now. A file's content is made to last before
// the file gets its name, and its name, which is in its folder, before anybody goes
// on: a key that was used is there at the next start. The package never reads what
// it writes.
package durable
