// Package situation says in what state a fleet is: what is there, what is not
// ready and why, and what to do about it.
//
// In go the objects of the control plane, one by one, and the time; out come a
// Fleet, which is what scripts read, and its text of one screen. It reads
// nothing itself and decides nothing: it repeats what the loops wrote.
package situation
