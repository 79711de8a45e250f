// Package fairqueue is the work queue of every loop: what users wait for goes
// first, nothing waits forever, and tenants share the workers.
//
// In go keys with a priority; out come keys, each to one worker at a time. Of
// every four that are handed out, three are the oldest of the highest priority,
// and one is the oldest of all: a key with n older ones is handed out within
// 4(n+1) handouts, whatever else is added.
//
// Keys may belong to owners, such as tenants. One owner never has all workers; of
// keys of the same priority, that of the owner with the fewest workers goes
// first; and owners take turns, also with their oldest keys. Among m owners that
// may have another worker, a key with n older ones of its own owner is handed out
// within 4m(n+1) handouts, however many keys the others add. The package does not
// know what the keys stand for, and keeps nothing over a restart.
package fairqueue
