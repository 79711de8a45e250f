// Package drift says what somebody else did to an object in a member.
//
// In go a manifest and what is known of its object; out comes what differs, in words,
// or nothing. It asks the member for the object, once for each state of it, counts
// what is found, and emits Events on the Work and on its template. It remembers what
// it has compared, and starts empty. It puts nothing back.
package drift
