// Package durable writes files that survive a power failure.
//
// In go a path and content; the file has the old or the new content at any time, and
// once a call has returned, the new one. A file's content is synced before
// the file gets its name, and the folder with the name before the call
// returns: a key that was used exists at the next start. The package never reads what
// it writes.
package durable
