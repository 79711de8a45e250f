package customizations

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kruise returns the rules for the kinds of OpenKruise, which extend Kubernetes'
// own workloads.
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

// updatedClones reports whether enough replicas are updated: all of them or,
// where a partition keeps some on the old revision, as many as the controller
// expects.
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

// updatedSet reports whether all replicas are updated but those that a partition
// keeps.
func updatedSet(obj kinds.Object) (bool, error) {
	wanted := words.CountOr(1, obj.Object, "spec", "replicas")
	kept := rules.Share(rules.Value(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition"), wanted)
	return rules.Number(obj.Object, "status", "updatedReplicas") >= wanted-kept, nil
}

// ownVolumeClaims wraps a rule to leave out the volume claims that the set makes
// from its own templates.
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

// updatedNodes reports whether all nodes have the latest pod template but those
// that a partition keeps.
func updatedNodes(obj kinds.Object) (bool, error) {
	wanted := rules.Number(obj.Object, "status", "desiredNumberScheduled")
	kept := rules.Share(rules.Value(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition"), wanted)
	return rules.Number(obj.Object, "status", "updatedNumberScheduled") >= wanted-kept, nil
}

// unitedTemplates are the fields below spec.template in which a UnitedDeployment
// may hold the template of its workloads.
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

// updatedSubsets reports whether all replicas are updated but those that the
// partitions of subsets keep.
func updatedSubsets(obj kinds.Object) (bool, error) {
	wanted := words.CountOr(1, obj.Object, "spec", "replicas")
	partitions := rules.Object(obj.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	for subset := range partitions {
		wanted -= max(rules.Number(partitions, subset), 0)
	}
	return rules.Number(obj.Object, "status", "updatedReplicas") >= wanted, nil
}

// sidecarSet returns the rules for a SidecarSet, which adds containers to the
// pods of others. It runs no pods itself, so it has no replicas to divide, and
// goes to every cluster that is chosen.
func sidecarSet() kinds.Rules {
	counts := []string{"matchedPods", "updatedPods", "readyPods", "updatedReadyPods"}
	return kinds.Rules{
		Replicas: func(kinds.Object) (int32, *words.Needed, error) { return 0, nil, nil },
		// The member's webhook computes the hashes. Injection and updates are
		// paused in the member to halt them there.
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
		// Without spec.namespace it applies to the pods of all namespaces, and what
		// its containers need would have to be in each of them: only a single
		// namespace can be served.
		Dependencies: words.Within(words.TextAt("spec.namespace"), words.Pods("spec")),
	}
}

var sidecarHashes = [][]string{
	{"metadata", "annotations", "kruise.io/sidecarset-hash"},
	{"metadata", "annotations", "kruise.io/sidecarset-hash-without-image"},
}

// broadcastJob returns the rules for a BroadcastJob, which runs a pod on each
// node. A parallelism that is a number counts as its replicas. With a percentage
// of the nodes, or none at all, there is nothing to divide: the job goes as it is
// to every cluster that is chosen.
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
		// The controller finds its pods by these labels. A template that was copied
		// from a cluster has those of another job.
		Retain:  words.Drop(broadcastLabels...),
		Retains: words.Standing(broadcastLabels...),
		Reflect: rules.ReflectTracked(append(counts, "conditions", "startTime", "completionTime", "phase")...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition(), rules.Earliest("startTime"), rules.Ended("completionTime"),
			rules.Worst("phase", "", "failed", rules.Others, "paused", "running", "completed")),
		Health:       words.All(words.Word("status.phase", "running", "completed", "paused"), words.NotTrue("Failed"), words.None("status.failed")),
		Dependencies: words.Pods("spec.template.spec"),
	}
}

// limited reports whether the parallelism of a BroadcastJob is a number, rather
// than a percentage or missing.
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

// mostActive is how many running jobs the status of a template lists.
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
