// Package admission judges what is about to be stored in the control plane, in
// the server's own process: identities that outlive names, defaults and
// validity of the control plane's own kinds, quotas, and what must not be
// deleted. Kinds that are served with their Go types see to defaults and validity
// by themselves (see aggregated).
//
// In goes a request with its object; out comes the object completed, or an error
// that names the field, and warnings for the one who asked. The package stores
// nothing and has no effect beyond the object, but for remembering, while a
// binding is being written, what it will use of a quota, and for noting on a template
// who writes a part of it by a sub-resource; a dry run is judged like
// any other request and leaves no trace.
package admission
