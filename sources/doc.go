// Package sources holds the packages by which commits become objects: git reads
// them, artifact stores their files, build turns files into objects, repository
// is the loop that does the first two, and forge reports the outcome.
//
// The package itself is empty. None of these packages decides where objects run.
package sources
