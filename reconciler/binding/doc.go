// Package binding turns bindings into Works: for each cluster of a placement
// the manifest that it should hold.
//
// It reads bindings, templates, overrides, clusters and Works. It writes the
// metadata and spec of Works, removes the finalizer from deleted bindings and ends
// the scheduler's eviction tasks. plan.Works decides the content of Works; this package
// brings the Works of a binding
// up to date, concurrently, as a set compared by permanent ID, and writes nothing
// if nothing differs. It never writes a status and never calls a member.
//
// A changed template is written into its Works once the binding has its version, or
// at once if nothing has to be decided about the change: see Options.PlacementUnchanged. Until
// then clusters keep what they have, and what it moves to gets that: see plan.Held. What ends evictions and removes Works
// does not depend on what is rendered.
//
// Works of clusters that left the placement are removed only once the binding
// has a Work elsewhere, or no cluster at all: a template that cannot be rendered
// for its new clusters stays where it is. A cluster that others replace has an
// eviction task of the scheduler, and is left once these are healthy: this package
// ends the task, as eviction.Ending decides.
//
// Works of a binding that is being deleted are left to the execution loop, if that
// ends them along with the binding (Options.Ends). The binding stays until they have ended; after a
// while, the Works that are left are deleted. So are Works in clusters that were left, which the
// write that ends the eviction task names.
//
// A Work that exists under a former name is renamed: the one of the new
// name is written first, and replaces it.
//
// Events, each once per failure: SyncWorkFailed and ApplyOverridePolicyFailed on
// the template and the binding. EvictWorkloadFromClusterSucceed on the template.
package binding
