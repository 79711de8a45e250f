// Package repository is the reconciler of Flux's GitRepository: it keeps the
// artifact of each repository's ref in the store, and reports on it in the
// object's status.
//
// It reads GitRepositories and the Secrets that they refer to, and writes their
// status and Events. From deleted ones it removes the finalizer that Flux's
// source-controller may have set. It asks the remote for its refs first: if the
// ref has not moved, nothing is fetched and nothing is written. If anything
// fails, the last artifact stays.
//
// Conditions that it owns: Ready, Reconciling, Stalled, FetchFailed,
// ArtifactInStorage, StorageOperationFailed, SourceVerified, with Flux's reasons, and the reasons
// UnsupportedField, HostKeyNotTrusted and AddressNotAllowed.
package repository
