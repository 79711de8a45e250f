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
	multi       = schema.GroupVersion{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}
)

// Table returns the rules of all kinds that are built in.
func Table() kinds.Table {
	return kinds.Table{
		apps.WithKind("Deployment"):                     deployment(),
		apps.WithKind("ReplicaSet"):                     replicaSet(),
		apps.WithKind("StatefulSet"):                    statefulSet(),
		apps.WithKind("DaemonSet"):                      daemonSet(),
		batch.WithKind("Job"):                           job(),
		batch.WithKind("CronJob"):                       cronJob(),
		core.WithKind("Pod"):                            pod(),
		core.WithKind("Service"):                        service(),
		core.WithKind("ServiceAccount"):                 {Retain: retainServiceAccount},
		core.WithKind("Secret"):                         {Retain: retainSecret, Retains: isTokenSecret},
		core.WithKind("PersistentVolumeClaim"):          persistentVolumeClaim(),
		core.WithKind("PersistentVolume"):               {Retain: dropChanged("spec", "claimRef"), Aggregate: aggregatePV},
		networking.WithKind("Ingress"):                  ingress(),
		policy.WithKind("PodDisruptionBudget"):          disruptionBudget(),
		autoscaling.WithKind("HorizontalPodAutoscaler"): autoscaler(),
		multi.WithKind("ServiceImport"):                 {Dependencies: serviceImportDependencies},
	}
}

func deployment() kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"}
	return kinds.Rules{
		Replicas:     specReplicas,
		Revise:       reviseAt("spec", "replicas"),
		Retain:       retainReplicas,
		Retains:      retainsReplicas,
		Reflect:      reflectTracked(counts...),
		Aggregate:    aggregateTracked(counts...),
		Health:       rolledOut,
		Dependencies: templateDependencies,
	}
}

func statefulSet() kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"}
	return kinds.Rules{
		Replicas:     specReplicas,
		Revise:       reviseAt("spec", "replicas"),
		Reflect:      reflectTracked(counts...),
		Aggregate:    aggregateTracked(counts...),
		Health:       rolledOut,
		Dependencies: statefulSetDependencies,
	}
}

func replicaSet() kinds.Rules {
	return kinds.Rules{
		Replicas:     specReplicas,
		Revise:       reviseAt("spec", "replicas"),
		Reflect:      reflectTracked("replicas", "readyReplicas", "availableReplicas"),
		Aggregate:    aggregateTracked("replicas", "readyReplicas", "availableReplicas"),
		Health:       replicaSetHealthy,
		Dependencies: templateDependencies,
	}
}

func daemonSet() kinds.Rules {
	counts := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
		"numberReady", "updatedNumberScheduled", "numberUnavailable",
	}
	return kinds.Rules{
		Reflect:      reflectTracked(counts...),
		Aggregate:    aggregateTracked(counts...),
		Health:       daemonSetHealthy,
		Dependencies: templateDependencies,
	}
}

func job() kinds.Rules {
	return kinds.Rules{
		Replicas:     jobReplicas,
		Revise:       reviseAt("spec", "parallelism"),
		Reflect:      reflectFields("active", "succeeded", "failed", "conditions", "startTime", "completionTime"),
		Aggregate:    aggregateJob,
		Dependencies: templateDependencies,
	}
}

func cronJob() kinds.Rules {
	return kinds.Rules{Aggregate: aggregateCronJob, Dependencies: cronJobDependencies}
}

func pod() kinds.Rules {
	return kinds.Rules{
		Replicas:     podReplicas,
		Retain:       retainPod,
		Health:       podHealthy,
		Aggregate:    aggregatePod,
		Dependencies: podDependencies,
	}
}

func service() kinds.Rules {
	return kinds.Rules{
		Retain:    dropChanged("spec", "healthCheckNodePort"),
		Retains:   has("spec", "healthCheckNodePort"),
		Reflect:   reflectService,
		Health:    serviceHealthy,
		Aggregate: aggregateService,
	}
}

func ingress() kinds.Rules {
	return kinds.Rules{Health: hasAddress, Aggregate: aggregateAddresses, Dependencies: ingressDependencies}
}

func persistentVolumeClaim() kinds.Rules {
	return kinds.Rules{
		Retain:    dropChanged("spec", "volumeName"),
		Retains:   has("spec", "volumeName"),
		Health:    claimHealthy,
		Aggregate: aggregatePVC,
	}
}

func disruptionBudget() kinds.Rules {
	return kinds.Rules{
		Reflect:   reflectTracked("disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy", "disruptedPods"),
		Health:    budgetHealthy,
		Aggregate: aggregateBudget,
	}
}

func autoscaler() kinds.Rules {
	return kinds.Rules{
		Reflect:   reflectTracked("currentReplicas", "desiredReplicas"),
		Aggregate: aggregateTracked("currentReplicas", "desiredReplicas"),
	}
}
