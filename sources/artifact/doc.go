// Package artifact keeps what sources fetched: sets of files, packed, named by
// the digest of their content, on disk.
//
// In go an fs.FS and ignore rules, or a foreign archive; out come Files within
// Limits, and a digest and URL to find them again. A Store survives being
// killed at any point: what it names is whole, and is checked against its name
// when it is opened. It never follows links and holds only regular files.
package artifact
