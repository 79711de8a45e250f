// Package commitstatus says what a commit's status should be: one rollup per
// Kustomization and Provider, from the Kustomization's conditions and from how
// the members fare with what it applied.
//
// It reads Kustomizations, their GitRepositories, Alerts, Providers and
// bindings, and writes the spec of CommitStatus objects, one per Kustomization
// and Provider, owned by the Kustomization. It never talks to a forge: package
// poster does, from these objects, so that a forge that is down delays nothing.
//
// It owns no condition. Its one event, InvalidCELExpression, goes to the
// Kustomization whose context cannot be computed.
package commitstatus
