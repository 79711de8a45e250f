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
// What spec.include names is read from the store, and becomes part of the artifact;
// another artifact of an included repository makes a new one.
//
// Conditions that it owns: Ready, Reconciling, Stalled, FetchFailed,
// ArtifactInStorage, StorageOperationFailed, IncludeUnavailable, SourceVerified, with Flux's
// reasons, and the reasons UnsupportedField, InvalidAnnotation, HostKeyNotTrusted, AddressNotAllowed and
// IncludeCycle.
package repository
