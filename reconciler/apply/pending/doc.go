// Package pending distinguishes refusals that pass by themselves from those that a person has to mend.
//
// In go the refusal of a revision and who applied the Kustomization that was refused; out comes the refusal, or, for a
// minute at most, that somebody else has yet to apply that revision, too: the Kustomization that applied this one, which
// may change or delete it, or whoever removes the namespace of what would go. It reads a cache, and writes nothing.
package pending
