// Package repository is the loop of Flux's GitRepository: it keeps the
// artifact of each repository's ref in the store, and says so in its status.
//
// It reads GitRepositories and the Secrets that they name, and writes their
// status and Events, nothing else. It asks the remote for its refs first: when
// the ref has not moved, nothing is fetched and nothing is written. When
// anything fails, the last artifact stays.
//
// Conditions that it owns: Ready, Reconciling, Stalled, FetchFailed,
// ArtifactInStorage, StorageOperationFailed, with Flux's reasons, and the
// reasons UnsupportedField and HostKeyNotTrusted.
package repository
