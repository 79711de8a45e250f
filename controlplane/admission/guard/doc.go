// Package guard keeps people from deleting what would take more with it than they mean.
//
// In goes a deletion; out comes a refusal that says what would go and what to do instead,
// or nothing. What is refused is so for everybody. It reads the control plane's own objects
// and changes nothing.
package guard
