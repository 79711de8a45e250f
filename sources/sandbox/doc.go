// Package sandbox builds in a process of its own.
//
// In go the files of a build; out come its objects, or what is wrong with them. Reading
// what is large takes time and leaves garbage, and kustomize cannot be interrupted, keeps
// schemas in globals and may need any time and memory: here it is the program itself
// that is started once more, with an empty environment and limits of its own, talks over
// its standard input and output, and is killed with all of its group when the context
// ends. Nothing is kept of it.
package sandbox
