// Package situation reports the state of a fleet: what is there, what is not
// ready and why, and what to do about it.
//
// In go the objects of the control plane, one by one, and the time; out come a
// Fleet, which scripts read, and its text, which fits on one screen. It reads no
// server and decides nothing: it reports what the loops have written.
package situation
