// Package drift finds out what somebody else did to an object in a member.
//
// In go a manifest and what is known of its object; out comes a text about what differs,
// or nothing. It reads the object from the member, once for each state of it, counts
// what it finds, and emits events on the Work and on its template. It remembers what
// it has compared, and starts empty. It corrects nothing.
package drift
