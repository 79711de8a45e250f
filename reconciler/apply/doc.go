// Package apply brings what a source fetched to the control plane: it builds a
// Kustomization's folder, checks all of it against the hub, applies what
// differs, deletes what left the revision, and waits until it is healthy where
// that is asked for.
//
// It reads Kustomizations and their sources, and as the service account that acts for a Kustomization the ConfigMaps
// and Secrets of its variables, dependencies in other namespaces, and objects that are waited for. It writes the
// objects of the revision, as that account, and the status and finalizer of the Kustomization. For Kustomizations of
// privileged namespaces it acts with its own rights. With spec.kubeConfig all of that is done in the cluster which that
// leads to, but for Kustomizations and what builds read. It never touches an object that does not carry the
// Kustomization's labels, except to take it over because the revision holds it. It never deletes because a build came
// out empty, and never what another Kustomization of the source wants.
//
// Conditions: Ready, Reconciling, Stalled and Healthy, as Flux has them. Reasons
// are Flux's (ReconciliationSucceeded, Progressing, DependencyNotReady,
// ArtifactFailed, BuildFailed, HealthCheckFailed, PruneFailed,
// ReconciliationFailed, AccessDenied), those of package applier for what the hub
// would refuse, and PathNotFound, EmptyBuild, DuplicateObject, PruneBlocked, UnknownCluster, DependencyCycle,
// InvalidServiceAccount, InvalidKubeConfig, NotSupported, ClusterSilent, HandingOver, SharedObject.
//
// At each interval the objects are listed by their labels, one request per kind;
// only those that changed since they were last compared are sent to the server
// for a dry run, and only those that differ are written. A status is written
// when it changes.
//
// Its parts, in the order in which a run asks them:
//
//	watches            which change starts a run of which Kustomization
//	intervals          when the next run is due without one
//	kustomizations     reads Kustomizations; writes their finalizers and statuses
//	suspended          what is said of one that is suspended
//	impersonation      who acts for it
//	limits             how much a namespace may have
//	dependencies       whether what it depends on is ready
//	builder            from the files of an artifact to objects
//	undecrypted        why files are not decrypted
//	target             connects to the cluster of spec.kubeConfig,
//	remotecluster      and decides what may be deleted there
//	applier            reads, checks, writes and deletes objects
//	siblings           who else of the source wants an object
//	riskyedits         edits of policies and Clusters that look like a mistake
//	cascadingdeletion  what goes along with what is removed
//	switchover         what clusters must see as a whole, and with whom
//	observation        reads what is judged,
//	health             and judges it, on the hub and in members
//	clusterprune       in which clusters what left may go before it goes everywhere
//	termination        what is still being deleted
//	finalization       whether a deleted Kustomization may go
//	transientrefusals  which refusals pass by themselves
//	lastgood           keeps the last good revision while a newer one is refused
//	recreatebackoff    when what somebody else deleted is created again
//	metrics            counts all that
package apply
