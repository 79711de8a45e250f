// Package tenure keeps a process that has lost the lease, and may not know it yet, from
// writing: a process that was paused (SIGSTOP, a suspended VM) goes on at any instruction.
//
// In go the lease that replicas compete for and the requests of whoever holds it.
// Out come requests that end with the lease, by the monotonic clock, and, on
// their way to the hub, carry the epoch that the hub's store compares in the
// transaction of the write. The package decides nothing about who leads: client-go's
// elector does that through Lock.
//
// A MemberLease does the same for a program of which one instance acts in a member at a time: it goes on
// reading between two turns, and takes the next one by itself.
package tenure
