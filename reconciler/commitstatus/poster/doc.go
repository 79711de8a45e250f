// Package poster posts CommitStatus objects to forges.
//
// It reads CommitStatuses, Providers and their Secrets, posts what the forge
// does not know yet, and writes the status of the CommitStatus: what was posted,
// and the condition Synced with the reasons Posted, WaitingForForge, Unreachable,
// Refused, ProviderNotReady and AddressNotAllowed. It never changes what is to be posted, and never asks a forge
// what it knows: the object remembers. A commit whose status is pending when its CommitStatus is deleted is reported before that goes.
//
// Every namespace has a circuit breaker of its own for every forge: it lets one post through
// at a time, and after a fault none until the forge's own Retry-After, or a growing pause, is over. A forge
// that is down delays only itself, and no tenant delays another.
package poster
