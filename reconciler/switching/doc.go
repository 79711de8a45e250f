// Package switching keeps what is half written from those who carry it to clusters.
//
// In go the Kustomizations of the control plane, what the loop that applies them says before it
// writes the first object of a revision and once all stand, and the overrides. Out come whether an
// object belongs to a Kustomization that is being switched from one revision to the next, and the
// overrides that count: of one that is being switched those of the revision before, until all of the
// next one count at once.
//
// What is being switched stands in the status of its Kustomization, condition Switching, so that
// whoever leads next knows it. It then holds what the Kustomization owns, and what its overrides
// touch, as it stands: which overrides counted before is known to nobody any more.
//
// A Kustomization that is suspended or being deleted is not switched: what stands is what counts. What left one that
// is suspended is carried as any other template is, but for the clusters from which it has been pruned.
// The package writes nothing.
package switching
