// Package fairqueue is the queue of every loop: what users wait for goes first, nothing waits
// forever, and tenants share the workers.
//
// In go keys with a priority; out come keys, one worker at a time for each. Of
// every four that are handed out, three are the oldest of the highest priority,
// and one is the oldest of all: a key with n older ones before it is served
// within 4(n+1) handouts, whatever else comes. Where keys belong to tenants, one
// tenant never has all workers, of what is equally urgent that of the one with the
// fewest goes first, and they take turns, with their oldest as well: among m who
// may have one more, a key with n older ones of its own tenant before it is served
// within 4m(n+1) handouts, however much others ask for. The package knows nothing
// of what the keys stand for, and keeps nothing over a restart.
package fairqueue
