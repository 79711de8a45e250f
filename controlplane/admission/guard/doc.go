// Package guard refuses deletions that would remove more than the user expects.
//
// In goes a deletion; out comes nothing, or a refusal with what would be removed and what
// to do instead. A refusal holds for every user. The package reads the control plane's own
// objects and changes nothing.
package guard
