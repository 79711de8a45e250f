// Package fetching is what the loops have in common that fetch sources, each loop one kind: the limits of namespaces, which
// count all kinds together; artifacts that are in use although there is a newer one; Secrets; conditions; and the sweep after a start.
//
// In go a source and the store of artifacts; out come errors for the status, and conditions in the object in memory. It fetches
// nothing, and writes no object.
package fetching
