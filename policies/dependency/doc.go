// Package dependency decides what goes along with templates whose policy says
// propagateDeps: which objects they refer to, and what the binding of such an
// object says.
//
// In go the bindings of templates with what these refer to (users), an object of
// the hub that some of them need, and its binding of today; out comes that
// binding as it should be, or that there should be none. It is the same for all
// orders in which users come, and what is as it should be stays as it is.
//
// A binding that nothing but users asks for is attached: it has no placement, is
// not scheduled, and runs where its users run. One that a policy carries is
// governed: the policy decides, and the clusters of the users are added.
//
// References reach objects of the template's own namespace. ReferenceScope decides what else they
// may reach: what another namespace or an administrator's policy grants.
//
// The package reads nothing by itself. What is not known changes nothing: a user
// of which it is not known whether it needs the object still needs it.
package dependency
