// Package commitstatus decides what a commit's status should be: one per
// Kustomization and Provider, from the Kustomization's conditions and from how
// the members fare with what it applied, and one per source and Provider, which
// sums those up.
//
// It reads Kustomizations, their GitRepositories, Alerts, Providers and
// bindings, and writes the spec of CommitStatus objects, owned by the
// Kustomization or the source. It never talks to a forge: package
// poster does, from these objects, so that a forge that is down delays nothing.
//
// It owns no condition. Its one event, InvalidCELExpression, goes to the
// Kustomization or the source whose context cannot be computed.
package commitstatus
