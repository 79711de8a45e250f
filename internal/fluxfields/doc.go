// Package fluxfields holds docs/compatibility.md to the code, as tests: what becomes of each field
// that the definitions of Flux's kinds have.
//
// It contains no code that runs in a program.
package fluxfields
