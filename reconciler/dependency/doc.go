// Package dependency propagates what templates refer to, where their policy
// sets propagateDeps: each such object gets a binding that runs where the
// templates run that need it.
//
// It reads bindings, templates and the objects that these refer to, and asks the
// interpreter what that is. It makes and deletes attached bindings, and writes on
// any binding of such an object who needs it (spec.requiredBy and a label for
// each). On the binding of a template that needs something it writes what that
// is, why that is not known, and a finalizer. It touches no Work and no status;
// what is decided is package policies/dependency.
//
// Two loops share a reverse index of who needs what. One keeps it: it looks at the
// bindings of templates that may need something. The other one brings the
// bindings of dependencies up to date. The reverse index starts empty: what a binding
// records of a user that has not been reconciled yet stays, and a user that cannot be
// found has gone only once the control plane itself says so.
//
// Reasons of Events, each once per failure: GetDependenciesFailed on the template
// and its binding, SyncScheduleResultToDependenciesFailed on the bindings of
// users, DependencyPolicyConflict on an attached binding.
package dependency
