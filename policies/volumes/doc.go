// Package volumes decides whether a PersistentVolumeClaim, and its data, is removed from a member when
// its Work is deleted.
//
// In goes a Work; out come whether its claims stay, and texts for people, of what a template leaves behind and finds elsewhere, too, including the condition in which a Cluster lists the
// claims that stay there, and its parser. A claim is removed only
// if its template was deleted on the control plane, or a person named it: no other reason to
// delete a Work is about data. The same holds for objects that create claims in a cluster, such as StatefulSets: in
// goes a manifest, and out comes one that leaves the claims there. The package does no I/O, and decides for no other kind.
package volumes
