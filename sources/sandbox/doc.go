// Package sandbox runs builds in a child process.
//
// In go the files of a build; out come its objects, or the build's error. Parsing
// large files takes time and leaves garbage, and kustomize cannot be interrupted, keeps
// schemas in globals and may need any amount of time and memory. So the program starts
// itself once more, with an empty environment and limits of its own; the child talks over
// its standard input and output, and is killed with all of its group when the context
// ends. Nothing of it is kept.
package sandbox
