// Package rules is what rules for kinds are written with: how fields of objects
// are read, and the rules that many kinds share.
//
// In go objects, statuses and the paths of fields; out come functions in the
// shape of package kinds. Fields are read as they stand: what has another type
// than expected counts as absent, except where a number would silently be wrong.
// Nothing here names a kind, changes what comes in, or panics on any content.
package rules
