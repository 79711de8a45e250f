// Package revisiongate decides which templates may be carried to clusters: none of a revision that is half written.
//
// In go the Kustomizations of the control plane, calls of the loop that applies them before it
// writes the first object of a revision and once all are written, and the overrides. Out come whether an
// object belongs to a Kustomization that is being switched from one revision to the next, and the
// overrides in force: of a Kustomization that is being switched those of the previous revision, until all of the
// next one take effect at once.
//
// A switch is recorded in the status of its Kustomization, condition Switching, so that
// the next leader knows it. The next leader leaves what the Kustomization owns, and what its overrides
// touch, unchanged: which overrides were in force before is no longer known.
//
// Kustomizations that exchange objects can be joined: what they wrote takes effect at the same time.
//
// A Kustomization that is suspended or being deleted is not switched: its objects count as they are, but for one of which
// others have yet to take some. What left one that is suspended is carried as any other template is, but for the clusters from which it has been pruned.
// The package writes nothing.
package revisiongate
