package native

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

var (
	core        = schema.GroupVersion{Version: "v1"}
	apps        = schema.GroupVersion{Group: "apps", Version: "v1"}
	batch       = schema.GroupVersion{Group: "batch", Version: "v1"}
	networking  = schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
	policy      = schema.GroupVersion{Group: "policy", Version: "v1"}
	autoscaling = schema.GroupVersion{Group: "autoscaling", Version: "v2"}
	extensions  = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}
	aggregation = schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}
	multi       = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}
)

// Table returns the rules for all of Kubernetes' own kinds that are known.
func Table() kinds.Table {
	return kinds.Table{
		apps.WithKind("Deployment"):                     deployment(),
		apps.WithKind("ReplicaSet"):                     replicaSet(),
		core.WithKind("ReplicationController"):          replicaSet(), // the two differ in their selectors only
		apps.WithKind("StatefulSet"):                    statefulSet(),
		apps.WithKind("DaemonSet"):                      daemonSet(),
		batch.WithKind("Job"):                           job(),
		batch.WithKind("CronJob"):                       cronJob(),
		core.WithKind("Pod"):                            pod(),
		core.WithKind("Service"):                        service(),
		core.WithKind("ServiceAccount"):                 serviceAccount(),
		core.WithKind("Secret"):                         secret(),
		core.WithKind("PersistentVolumeClaim"):          persistentVolumeClaim(),
		core.WithKind("PersistentVolume"):               persistentVolume(),
		networking.WithKind("Ingress"):                  ingress(),
		policy.WithKind("PodDisruptionBudget"):          disruptionBudget(),
		autoscaling.WithKind("HorizontalPodAutoscaler"): autoscaler(),
		extensions.WithKind("CustomResourceDefinition"): serves("Established"),
		aggregation.WithKind("APIService"):              serves("Available"),
		multi.WithKind("ServiceImport"):                 {Dependencies: serviceImportDependencies},
	}
}
