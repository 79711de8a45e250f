// Package owners says to which of several Works an object in a member belongs.
//
// Two Works of a cluster may ask for one object: two templates that overrides
// rename into one, or a Work that a user wrote. The object belongs to the Work
// that it names, as long as that asks for it. The other waits and says so: were
// it applied, too, each look at either would undo the other.
//
// In go a Work, one of its manifests, and what its object says; out comes who else
// owns it, and who gets it next. It reads Works from the hub's cache, and writes
// nothing.
package owners
