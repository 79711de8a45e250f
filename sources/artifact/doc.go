// Package artifact stores what sources fetched on disk: sets of files, packed,
// and named by the digest of their content.
//
// In go an fs.FS and ignore rules, or a foreign archive; out come Files within
// Limits, and a digest and URL to find them again. A Store survives being killed
// at any point: an artifact that it names is complete, and is verified against
// its name when it is opened. The package never follows links, and stores only
// regular files.
package artifact
