// Package owners decides to which of several Works an object in a member belongs.
//
// Two Works of a cluster may have a manifest for the same object: two templates that overrides
// rename to the same name, or a Work that a user wrote. The object belongs to the Work
// that it names, as long as that has a manifest for it. The other waits and reports so: if it
// were applied as well, each pass over either would undo the other.
//
// In go a Work, one of its manifests, and the metadata of its object; out comes who else
// owns it, and who gets it next. It reads Works from the hub's cache, and writes
// nothing.
package owners
