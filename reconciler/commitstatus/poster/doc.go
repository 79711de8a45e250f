// Package poster tells forges what CommitStatus objects say.
//
// It reads CommitStatuses, Providers and their Secrets, posts what the forge
// does not know yet, and writes the status of the CommitStatus: what was posted,
// and the condition Synced with the reasons Posted, WaitingForForge, Unreachable,
// Refused, ProviderNotReady and AddressNotAllowed. It never changes what is to be told, and never asks a forge
// what it was told before: the object remembers.
//
// Every namespace has a lane of its own to every forge: one post at a time, and after
// a fault none until the forge's own Retry-After, or a growing pause, is over. A forge
// that is down delays only itself, and no tenant delays another.
package poster
