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
package apply
