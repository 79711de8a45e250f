// Package admission checks what is about to be stored in the control plane, in the
// server's own process: permanent ids, defaults and validity of the control plane's own
// kinds, quotas, and what must not be deleted. Kinds that are served with their Go types
// set defaults and check validity in their own strategies (see aggregated).
//
// In goes a request with its object; out comes the completed object, or an error that
// names the field, and warnings for the user. The package stores nothing and has no
// effect beyond the object, with two exceptions: while a binding is being written, it
// remembers what the binding will use of a quota, and it records on a template who
// writes a part of it by a sub-resource. A dry run is checked like any other request
// and changes nothing.
package admission
