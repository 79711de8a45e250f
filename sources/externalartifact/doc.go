// Package externalartifact is the reconciler of Flux's ExternalArtifact, whose status another controller writes: it keeps a copy
// of the artifact that the status names in the store.
//
// It reads ExternalArtifacts, and writes their annotation gitops.flotilla.io/fetched, which says which artifact is in the store,
// or why one is not, and Events. It never writes their status or spec. An artifact is fetched once, and is taken only if it has the
// digest of the status, and is an archive within the limits; its bytes are kept as they are. If anything fails, the copies
// that there are stay.
package externalartifact
