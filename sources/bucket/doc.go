// Package bucket is the reconciler of Flux's Bucket: it keeps the artifact of the objects of each one in the store, and reports
// on it in the object's status.
//
// It reads Buckets and the Secrets that they refer to, and writes their status and Events. From deleted ones it removes the
// finalizer that Flux's source-controller may have set. It asks the server for the list of the objects first: if their keys and
// versions are the same, nothing is fetched and nothing is written. Of what has changed only the objects of other versions are
// fetched, each by the version of the list. Nothing is taken of a list with keys that are no paths, or without an object: an
// empty answer never empties an artifact. If anything fails, the last artifact stays.
//
// Conditions that it owns: Ready, Reconciling, Stalled, FetchFailed, ArtifactInStorage, StorageOperationFailed, with Flux's
// reasons, and the reasons UnsupportedField and AddressNotAllowed.
package bucket
