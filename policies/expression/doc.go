// Package expression evaluates the CEL expressions that users write.
//
// In go the text of an expression and the objects that it looks at; out comes what
// it says, or an error that names what is wrong with it and never a value that it
// saw. The language is that of Flux: CEL with optional types and the functions for
// strings, sets and encodings.
//
// Expressions are foreign: how large one is, what reading it takes, what it costs, how
// much it makes and how long it takes are bounded, and it ends with its context.
// Reading one takes as long as its size lets it: types are not compared, since that
// takes the longer the deeper they are nested. What an evaluation costs is counted
// before each call is made, since a single one may take for ever: of two lists in
// which the same list stands twice, twice, and so on, or of a text in which everything
// is replaced by another one.
package expression
