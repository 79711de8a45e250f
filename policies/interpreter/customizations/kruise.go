package customizations

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kruise is OpenKruise, whose workloads are wider ones of Kubernetes' own.
func kruise() kinds.Table {
	const v1alpha1, v1beta1 = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
	return kinds.Table{
		words.Kind(v1alpha1, "CloneSet"):         cloneSet(),
		words.Kind(v1alpha1, "StatefulSet"):      advancedStatefulSet(),
		words.Kind(v1beta1, "StatefulSet"):       advancedStatefulSet(),
		words.Kind(v1alpha1, "DaemonSet"):        advancedDaemonSet(),
		words.Kind(v1alpha1, "UnitedDeployment"): unitedDeployment(),
		words.Kind(v1alpha1, "SidecarSet"):       sidecarSet(),
		words.Kind(v1alpha1, "BroadcastJob"):     broadcastJob(),
		words.Kind(v1alpha1, "AdvancedCronJob"):  advancedCronJob(),
	}
}

func cloneSet() kinds.Rules {
	counts := []string{
		"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
		"updatedAvailableReplicas", "expectedUpdatedReplicas",
	}
	return kinds.Rules{
		Replicas: words.Replicas("spec.replicas", 1, "spec.template"),
		Revise:   rules.ReviseAt("spec", "replicas"),
		Retain:   rules.RetainReplicas,
		Retains:  rules.RetainsReplicas,
		Reflect:  rules.ReflectTracked(append(counts, "conditions", "currentRevision", "updateRevision", "labelSelector")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition("FailedScale", "FailedUpdate"),
			rules.Same("currentRevision", "updateRevision", "labelSelector"), rules.Observe),
		Health: words.All(words.SpecObserved, words.NotTrue("FailedScale", "FailedUpdate"), updatedClones,
			words.Enough("status.availableReplicas", "spec.replicas", 1)),
		Dependencies: words.Pods("spec.template.spec"),
	}
}

// updatedClones asks that as many replicas are updated as the controller expects,
// where a partition keeps some on the old revision.
func updatedClones(obj kinds.Object) (bool, error) {
	wanted := words.CountOr(1, obj.Object, "spec", "replicas")
	if rules.Value(obj.Object, "spec", "updateStrategy", "partition") != nil {
		wanted = rules.Number(obj.Object, "status", "expectedUpdatedReplicas")
	}
	return rules.Bool(obj.Object, "spec", "updateStrategy", "paused") ||
		rules.Number(obj.Object, "status", "updatedReplicas") >= wanted, nil
}

func advancedStatefulSet() kinds.Rules {
	counts := []string{
		"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas",
		"updatedReadyReplicas", "updatedAvailableReplicas",
	}
	return kinds.Rules{
		Replicas: words.Replicas("spec.replicas", 1, "spec.template"),
		Revise:   rules.ReviseAt("spec", "replicas"),
		Retain:   rules.RetainReplicas,
		Retains:  rules.RetainsReplicas,
		Reflect:  rules.ReflectTracked(append(counts, "conditions", "currentRevision", "updateRevision", "labelSelector")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition("FailedCreatePod", "FailedUpdatePod"),
			rules.Same("currentRevision", "updateRevision", "labelSelector"), rules.Observe),
		Health:       words.All(words.SpecObserved, updatedSet, words.Enough("status.availableReplicas", "spec.replicas", 1)),
		Dependencies: ownVolumeClaims(words.Pods("spec.template.spec")),
	}
}

// updatedSet asks that all replicas are updated but those that a partition keeps.
func updatedSet(obj kinds.Object) (bool, error) {
	wanted := words.CountOr(1, obj.Object, "spec", "replicas")
	kept := rules.Share(rules.Value(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition"), wanted)
	return rules.Number(obj.Object, "status", "updatedReplicas") >= wanted-kept, nil
}

// ownVolumeClaims leaves out the volume claims that a set makes itself.
func ownVolumeClaims(n words.Need) words.Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		own := words.Find(obj.Object, "spec.volumeClaimTemplates.*.metadata.name")
		found, err := n(obj)
		return slices.DeleteFunc(found, func(d kinds.Dependency) bool {
			return d.Kind == "PersistentVolumeClaim" && slices.Contains(own, any(d.Name))
		}), err
	}
}

func advancedDaemonSet() kinds.Rules {
	counts := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled", "numberReady",
		"numberUnavailable", "updatedNumberScheduled",
	}
	return kinds.Rules{
		Reflect:      rules.ReflectTracked(append(counts, "conditions", "daemonSetHash")...),
		Aggregate:    rules.Aggregate(rules.Sum(counts...), rules.EveryCondition(), rules.Same("daemonSetHash"), rules.Observe),
		Health:       words.All(words.SpecObserved, updatedNodes, words.Enough("status.numberAvailable", "status.desiredNumberScheduled", 0)),
		Dependencies: words.Pods("spec.template.spec"),
	}
}

// updatedNodes asks that all nodes have the latest template but those that a
// partition keeps.
func updatedNodes(obj kinds.Object) (bool, error) {
	wanted := rules.Number(obj.Object, "status", "desiredNumberScheduled")
	kept := rules.Share(rules.Value(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition"), wanted)
	return rules.Number(obj.Object, "status", "updatedNumberScheduled") >= wanted-kept, nil
}

// unitedTemplates are where a UnitedDeployment may have the pod template of its
// workloads.
var unitedTemplates = []string{"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate"}

func unitedDeployment() kinds.Rules {
	counts := []string{"replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas"}
	return kinds.Rules{
		Replicas: func(obj kinds.Object) (int32, *words.Needed, error) {
			for _, t := range unitedTemplates {
				if rules.Object(obj.Object, "spec", "template", t) != nil {
					return words.Replicas("spec.replicas", 1, "spec.template."+t+".spec.template")(obj)
				}
			}
			return words.Replicas("spec.replicas", 1, "spec.template")(obj)
		},
		Revise:  rules.ReviseAt("spec", "replicas"),
		Retain:  rules.RetainReplicas,
		Retains: rules.RetainsReplicas,
		Reflect: rules.ReflectTracked(append(counts, "conditions", "subsetReplicas", "currentRevision", "labelSelector")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.SumByName("subsetReplicas"), rules.EveryCondition("SubsetFailure"),
			rules.Same("currentRevision", "labelSelector"), rules.Observe),
		Health:       words.All(words.SpecObserved, words.NotTrue("SubsetFailure"), updatedSubsets, words.Enough("status.readyReplicas", "spec.replicas", 1)),
		Dependencies: words.Pods("spec.template.*.spec.template.spec"),
	}
}

// updatedSubsets asks that all replicas are updated but those that partitions of
// subsets keep.
func updatedSubsets(obj kinds.Object) (bool, error) {
	wanted := words.CountOr(1, obj.Object, "spec", "replicas")
	partitions := rules.Object(obj.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	for subset := range partitions {
		wanted -= max(rules.Number(partitions, subset), 0)
	}
	return rules.Number(obj.Object, "status", "updatedReplicas") >= wanted, nil
}

// sidecarSet adds containers to pods of others. It has no replicas itself, and
// needs nothing where it stands: it goes to every cluster that is chosen.
func sidecarSet() kinds.Rules {
	counts := []string{"matchedPods", "updatedPods", "readyPods", "updatedReadyPods"}
	return kinds.Rules{
		Replicas: func(kinds.Object) (int32, *words.Needed, error) { return 0, nil, nil },
		// The member's webhook works out the hashes; pausing is how injection and
		// update are halted on the spot.
		Retain: func(desired, observed kinds.Object) (kinds.Object, error) {
			desired, err := words.Leave("spec.updateStrategy.paused", "spec.injectionStrategy.paused")(desired, observed)
			if err != nil {
				return nil, err
			}
			return words.Drop(sidecarHashes...)(desired, observed)
		},
		Retains:   words.Standing(append([][]string{words.At("spec.updateStrategy.paused"), words.At("spec.injectionStrategy.paused")}, sidecarHashes...)...),
		Reflect:   rules.ReflectTracked(append(counts, "latestRevision")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Same("latestRevision"), rules.Observe),
		Health: words.All(words.SpecObserved, words.Enough("status.readyPods", "status.matchedPods", 0), words.OneOf(
			words.Word("spec.updateStrategy.type", "NotUpdate"), words.Asks("spec.updateStrategy.paused"), words.There("spec.updateStrategy.partition"),
			words.Enough("status.updatedPods", "status.matchedPods", 0))),
		// Pods of any namespace are meant unless it names one: only there it can
		// be listed what has to be beside them.
		Dependencies: words.Within(words.TextAt("spec.namespace"), words.Pods("spec")),
	}
}

var sidecarHashes = [][]string{
	{"metadata", "annotations", "kruise.io/sidecarset-hash"},
	{"metadata", "annotations", "kruise.io/sidecarset-hash-without-image"},
}

// broadcastJob runs a pod on each node. Only a parallelism that is a number is
// one of replicas; without one, and as a share of the nodes, a job goes to every
// cluster that is chosen, as it is.
func broadcastJob() kinds.Rules {
	counts := []string{"active", "succeeded", "failed", "desired"}
	return kinds.Rules{
		Replicas: func(obj kinds.Object) (int32, *words.Needed, error) {
			if !limited(obj) {
				return 0, nil, nil
			}
			return words.Replicas("spec.parallelism", 0, "spec.template")(obj)
		},
		Revise: func(obj kinds.Object, n int32) (kinds.Object, error) {
			if !limited(obj) {
				return obj, nil
			}
			return rules.ReviseAt("spec", "parallelism")(obj, n)
		},
		// The controller recognises its pods by labels of its own; a job that was
		// copied from a cluster has those of another job.
		Retain:  words.Drop(broadcastLabels...),
		Retains: words.Standing(broadcastLabels...),
		Reflect: rules.ReflectTracked(append(counts, "conditions", "startTime", "completionTime", "phase")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition(), rules.Earliest("startTime"), rules.Ended("completionTime"),
			rules.Worst("phase", "", "failed", rules.Others, "paused", "running", "completed")),
		Health:       words.All(words.Word("status.phase", "running", "completed", "paused"), words.NotTrue("Failed"), words.None("status.failed")),
		Dependencies: words.Pods("spec.template.spec"),
	}
}

// limited reports whether a BroadcastJob runs so many pods at once.
func limited(obj kinds.Object) bool {
	switch rules.Value(obj.Object, "spec", "parallelism").(type) {
	case int64, float64:
		return true
	default:
		return false
	}
}

var broadcastLabels = [][]string{
	words.At("spec.template.metadata.labels.broadcastjob-name"),
	words.At("spec.template.metadata.labels.broadcastjob-controller-uid"),
}

// mostActive is how many running jobs a template names.
const mostActive = 100

func advancedCronJob() kinds.Rules {
	return kinds.Rules{
		Reflect: rules.Reflect("type", "active", "lastScheduleTime"),
		Aggregate: rules.Aggregate(rules.Collect("active"), rules.Shorten("active", mostActive), rules.Latest("lastScheduleTime"),
			rules.Same("type")),
		Dependencies: words.Needs(words.Pods("spec.template.*.spec.template.spec"),
			words.Secrets("spec.template.imageListPullJobTemplate.spec.pullSecrets.*")),
	}
}
