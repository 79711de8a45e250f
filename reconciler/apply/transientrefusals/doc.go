// Package transientrefusals decides which refusals of a revision pass by themselves, and which a person has to mend.
//
// In go the refusal of a revision and the Kustomization that was refused; out comes the refusal, or, for a minute at
// most, an error that waits because somebody else has yet to apply that revision, too: the Kustomization that applied
// this one, which may change or delete it, or the one that removes the namespace of what would be deleted. It reads
// a cache, and writes nothing.
package transientrefusals
