// Package pack keeps what a Git server transferred, and reads the objects in it.
//
// In goes the stream of a pack, out come commits, trees, tags and files by their hashes. The stream is measured against
// Limits before anything unpacks it into memory. Names in trees that lead elsewhere are refused. The package asks no server,
// and leaves no file behind that has a name.
package pack
