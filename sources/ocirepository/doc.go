// Package ocirepository is the reconciler of Flux's OCIRepository: it keeps the artifact of what each one refers to in the
// store, and reports on it in the object's status.
//
// It reads OCIRepositories, the Secrets that they refer to and the ServiceAccounts that name some, and writes their status and
// Events. From deleted ones it removes the finalizer that Flux's source-controller may have set. It asks the
// registry for the digest of the tag first: if that is the same, nothing is fetched and nothing is written. What is fetched
// is fetched by that digest, and is refused if it has another. If anything fails, the last artifact stays. Where the spec asks
// for signatures, an artifact without one is not fetched, and the record of who signed the one before goes when his key does.
//
// Conditions that it owns: Ready, Reconciling, Stalled, FetchFailed, ArtifactInStorage, StorageOperationFailed, SourceVerified, with
// Flux's reasons, and the reasons UnsupportedField and AddressNotAllowed.
package ocirepository
