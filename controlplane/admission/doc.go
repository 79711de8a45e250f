// Package admission judges what is about to be stored in the control plane, in
// the server's own process: identities that outlive names, defaults and
// validity of policies, and objects that must not be deleted. Kinds that are
// served with their Go types see to this by themselves (see aggregated).
//
// In goes a request with its object; out comes the object completed, or an error
// that names the field, and warnings for the one who asked. The package stores
// nothing and has no effect beyond the object, so a dry run is judged like any
// other request.
package admission
