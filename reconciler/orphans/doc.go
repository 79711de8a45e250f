// Package orphans finds the objects in members that this hub has applied and that
// no Work names any more.
//
// It reads Clusters and Works, and through internal/members what the watches that
// there are anyway have seen of members: it starts none but that of claims, and asks members nothing. One
// that had another name, or is held as the store was set back, is asked once for what is there of all kinds, and those of
// what was left are watched. It writes the conditions OrphansFound and ClaimsKept of a Cluster and removes, where the Cluster says
// so by the annotation cluster.flotilla.io/orphans, what policies/orphans takes for an
// orphan and a live look at Work and object confirms; claims it leaves, as their data goes with
// them. While the control plane waits
// since it was set back, nothing is removed. Anything else it leaves alone.
//
// An object that names a Work of another cluster was left when this one had that name. It
// stays as long as either cluster asks for it; an agent, which sees the Works of its own
// alone: it reports it, and never removes it.
//
// A kind that no Work names is watched no longer after a restart, and what is left of
// it is not seen here: flotilla prune lists all kinds. Claims are watched where the Cluster
// reports some.
//
// In pull mode the agent runs this loop for its cluster. Event on the Cluster, by the
// control plane when the condition turns: OrphansFound.
package orphans
