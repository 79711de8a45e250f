// Package sandbox runs builds in a child process.
//
// The input is the files of a build; the output is its objects, or the build's
// error. Parsing large files takes time and leaves garbage, and kustomize cannot
// be interrupted, keeps schemas in globals and may need any amount of time and
// memory. So the program starts itself once more, with an empty environment and
// its own limits. The child communicates over its standard input and output, and
// is killed with its process group when the context ends. Nothing of it is kept.
package sandbox
