// Package sources is the room where commits become objects: git reads them,
// artifact keeps their files, build turns files into objects, repository is
// the loop that does the first two, and forge says how it went.
//
// The package itself is empty. None of it decides where objects run.
package sources
