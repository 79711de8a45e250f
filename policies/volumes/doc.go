// Package volumes reports whether a PersistentVolumeClaim, and its data with it, leaves a member as
// the Work goes that brought it there.
//
// In goes a Work; out come whether its claims stay, and the words for people: also those in which a Cluster says which
// stay there, and what these say. A claim goes only
// if its template was deleted on the control plane, or somebody named it: nothing else that
// takes a Work away is about data. For what makes claims itself in a cluster, such as a StatefulSet, the same holds: in
// goes its manifest, and out comes one that leaves them there. The package talks to nobody, and decides for no other kind.
package volumes
