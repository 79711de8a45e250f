// Package timerslack has the kernel wake a program for many of its timers at once. A control
// plane at rest has hundreds of them a second: those of etcd, of caches and of queues. None
// has to be exact to the millisecond, and to be woken is most of what each costs.
//
// In goes by how much a timer may be late while nothing else runs, and when a server has
// something to do; out comes whether the kernel agreed. The package acts on the whole process, so only a program's main may use it.
package timerslack

import "time"

// Usual is what a server does not notice: no change arrives later for it, and rest costs
// half the CPU time.
const Usual = 10 * time.Millisecond

// untouched is what the kernel gives a process whose timer slack nobody has set.
const untouched = 50 * time.Microsecond

// Set lets every timer of the process be late by as much, rounded down to nanoseconds. Who
// started the process with another slack, as a service manager can, has decided: it stays.
// The error is errors.ErrUnsupported where the machine has no such thing, and in programs
// that are linked with C.
func Set(slack time.Duration) error { return set(slack) }
