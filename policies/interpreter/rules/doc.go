// Package rules holds the functions from which rules for kinds are put together:
// those that read fields of objects, and rules that many kinds share.
//
// In go objects, statuses and the paths of fields; out come functions in the form
// of package kinds. A value of another type than expected counts as absent,
// except where a number would silently be wrong. Nothing here names a kind,
// changes what comes in, or panics on any content.
package rules
