package batch

import (
	"cmp"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// ray is KubeRay: clusters of a head and groups of workers, and jobs and services
// that bring their own.
func ray() kinds.Table {
	t := kinds.Table{}
	versions := []string{"v1", "v1alpha1"}
	words.Served(t, "ray.io", versions, "RayCluster", rayCluster())
	words.Served(t, "ray.io", versions, "RayJob", rayJob())
	words.Served(t, "ray.io", versions, "RayService", rayService())
	return t
}

const workerGroups = "workerGroupSpecs"

func rayCluster() kinds.Rules {
	counts := []string{"desiredWorkerReplicas", "availableWorkerReplicas", "readyWorkerReplicas", "minWorkerReplicas", "maxWorkerReplicas"}
	amounts := []string{"desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU"}
	return words.Graded(kinds.Rules{
		Components: rayRoles("spec"),
		Retain:     retainWorkers,
		Retains:    func(desired kinds.Object) bool { return rules.Bool(desired.Object, "spec", "enableInTreeAutoscaling") },
		Reflect:    rules.ReflectTracked(slices.Concat(counts, amounts, []string{"state", "reason", "conditions", "endpoints"})...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Amounts(amounts...),
			rules.Worst("state", "", "failed", "unhealthy", rules.Others, "", "suspended", "ready"), rules.Quote("reason"),
			rules.EveryCondition("ReplicaFailure", "RayClusterReplicaFailure", "RayClusterSuspending",
				"RayClusterSuspended"), rules.Alike("endpoints"), rules.Observe),
		Dependencies: rayPods("spec"),
	}, rayGrade)
}

// rayGrade goes by the conditions of a cluster, and by its state where an older
// operator gives none of them.
func rayGrade(obj kinds.Object) words.Grade {
	const state = "status.state"
	conditions := rules.List(obj.Object, "status", "conditions")
	modern := rules.Condition(conditions, "HeadPodReady") != nil || rules.Condition(conditions, "RayClusterProvisioned") != nil
	runs := words.Word(state, "ready")
	if modern {
		runs = words.IsTrue("HeadPodReady", "RayClusterProvisioned")
	}
	held := words.OneOf(words.IsTrue("RayClusterSuspended"), words.Word(state, "suspended"))
	switch {
	case !words.Says(words.NotTrue("RayClusterReplicaFailure", "ReplicaFailure"), obj):
		return words.Failing
	case words.Says(words.All(words.Current, words.OneOf(runs, words.All(words.Asks("spec.suspend"), held))), obj):
		return words.Fine
	case words.Says(words.OneOf(runs, held, words.IsTrue("RayClusterSuspending")), obj), modern && words.Says(words.NotTrue("RayClusterProvisioned"), obj):
		return words.Waiting
	case modern || words.Says(words.Word(state, "", "failed", "unhealthy"), obj):
		return words.Failing
	default:
		return words.Waiting
	}
}

// retainWorkers takes over how many workers the autoscaler in the member wants
// and which are to go. The list of groups can only be applied as a whole.
func retainWorkers(desired, observed kinds.Object) (kinds.Object, error) {
	if !rules.Bool(desired.Object, "spec", "enableInTreeAutoscaling") || rules.Value(observed.Object, "spec", workerGroups) == nil {
		return desired, nil
	}
	have := map[string]map[string]any{}
	for _, group := range rules.Objects(observed.Object, "spec", workerGroups) {
		have[rules.Text(group, "groupName")] = group
	}
	out := desired.DeepCopy()
	for _, group := range rules.Objects(out.Object, "spec", workerGroups) {
		for _, field := range []string{"replicas", "scaleStrategy"} {
			if v := rules.Value(have[rules.Text(group, "groupName")], field); v != nil {
				group[field] = runtime.DeepCopyJSONValue(v)
			}
		}
	}
	return out, nil
}

func rayJob() kinds.Rules {
	deployment := []string{"Failed", "Retrying", "Suspending", "Suspended", "", "Initializing", "Waiting", "Running", "Complete"}
	job := []string{"FAILED", "STOPPED", "", "PENDING", "RUNNING", "SUCCEEDED"}
	counts := []string{"succeeded", "failed"}
	return words.Graded(kinds.Rules{
		Components: rayRoles("spec.rayClusterSpec"),
		Reflect: rules.ReflectTracked(append(counts, "jobStatus", "jobDeploymentStatus", "jobId", "rayClusterName", "message", "reason",
			"startTime", "endTime")...),
		Aggregate: rules.Aggregate(rules.Worst("jobDeploymentStatus", "", deployment...), rules.Worst("jobStatus", "", job...),
			rules.Sum(counts...),
			rules.Same("jobId", "rayClusterName",
				"reason"), rules.Quote("message"), rules.Earliest("startTime"), rules.Ended("endTime"), rules.Observe),
		Dependencies: words.Needs(rayPods("spec.rayClusterSpec"), words.Pods("spec.submitterPodTemplate.spec")),
	}, rayJobGrade)
}

// rayJobGrade goes by how far a job was brought, and by what it says once it runs.
func rayJobGrade(obj kinds.Object) words.Grade {
	const state, job = "status.jobDeploymentStatus", "status.jobStatus"
	switch {
	case words.Says(words.OneOf(words.Word(state, "", "Failed", "ValidationFailed"), words.All(words.Word(state, "Running", "Complete"), words.Word(job, "FAILED", "STOPPED"))), obj):
		return words.Failing
	case words.Says(words.All(words.Current, words.OneOf(words.Word(state, "Running", "Complete"), words.All(words.Asks("spec.suspend"), words.Word(state, "Suspended")))), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

// rayService divides its workers: every cluster needs a head of its own.
func rayService() kinds.Rules {
	const path = "spec.rayClusterConfig"
	return kinds.Rules{
		Replicas:   workers(path),
		Components: rayRoles(path),
		Revise:     reviseWorkers(path),
		Reflect:    rules.ReflectTracked("serviceStatus", "numServeEndpoints", "conditions"),
		Health:     words.All(words.Current, words.NotTrue("RayServiceFailed"), words.OneOf(words.IsTrue("Ready"), words.Word("status.serviceStatus", "Running"))),
		Aggregate: rules.Aggregate(rules.Worst("serviceStatus", "", "FailedToGetOrCreateRayCluster", "FailedServeDeploy",
			"FailedToUpdateIngress", "FailedToUpdateServingPodLabel", "FailedToUpdateService",
			"WaitForServeDeploymentReady", "WaitForDashboard", "WaitForDashboardReady", "Restarting", rules.Others, "", "Running"),
			rules.Sum("numServeEndpoints"), rules.EveryCondition("UpgradeInProgress"), rules.Observe),
		Dependencies: rayPods(path),
	}
}

// rayPods needs what head and workers of the cluster at a path do.
func rayPods(path string) words.Need {
	return words.Pods(path+".headGroupSpec.template.spec", path+"."+workerGroups+".*.template.spec")
}

// rayRoles are the head and the groups of workers of the cluster at a path.
func rayRoles(path string) func(kinds.Object) (words.Components, error) {
	return func(obj kinds.Object) (words.Components, error) {
		cluster := rules.Object(obj.Object, words.At(path)...)
		if cluster == nil {
			return nil, nil // a job for a cluster that is there already
		}
		r := words.Roster{Namespace: obj.GetNamespace()}
		r.Pods("head", 1, rules.Object(cluster, "headGroupSpec", "template", "spec"))
		for _, group := range rules.Objects(cluster, workerGroups) {
			name := cmp.Or(rules.Text(group, "groupName"), "workers")
			r.Pods(name, rules.Product(groupSize(group), words.CountOr(1, group, "numOfHosts")), rules.Object(group, "template", "spec"))
		}
		return r.Result()
	}
}

// groupSize is how many replicas a group of workers starts with; one that is
// suspended has none.
func groupSize(group map[string]any) int64 {
	if rules.Bool(group, "suspend") {
		return 0
	}
	return min(max(rules.Number(group, "replicas"), rules.Number(group, "minReplicas")), math.MaxInt32)
}

// workers counts the workers of all groups, and has each need what the larger
// of them does.
func workers(path string) func(kinds.Object) (int32, *words.Needed, error) {
	return func(obj kinds.Object) (int32, *words.Needed, error) {
		var n int64
		var need *words.Needed
		for _, group := range rules.Objects(obj.Object, append(words.At(path), workerGroups)...) {
			size, err := rules.Count(map[string]any{"replicas": groupSize(group)}, "replicas")
			if err != nil {
				return 0, nil, err
			}
			req, err := words.Requirements(obj.GetNamespace(), rules.Object(group, "template", "spec"))
			if err != nil {
				return 0, nil, err
			}
			n += int64(size)
			if need == nil {
				need = req
			} else if req != nil {
				need.ResourceRequest = rules.Most(need.ResourceRequest, req.ResourceRequest)
			}
		}
		return int32(min(n, math.MaxInt32)), need, nil
	}
}

// reviseWorkers shares replicas out over the groups of workers in proportion to
// their sizes; what is left over goes to the first of them.
func reviseWorkers(path string) func(kinds.Object, int32) (kinds.Object, error) {
	return func(obj kinds.Object, n int32) (kinds.Object, error) {
		out := obj.DeepCopy()
		groups := rules.Objects(out.Object, append(words.At(path), workerGroups)...)
		groups = slices.DeleteFunc(groups, func(g map[string]any) bool { return rules.Bool(g, "suspend") })
		var total int64
		for _, g := range groups {
			total += max(groupSize(g), 0)
		}
		left, shares := int64(n), make([]int64, len(groups))
		for i, g := range groups {
			if total > 0 {
				shares[i] = int64(n) * max(groupSize(g), 0) / total
				left -= shares[i]
			}
		}
		for i := 0; left > 0 && total > 0; i = (i + 1) % len(groups) {
			if groupSize(groups[i]) > 0 {
				shares[i]++
				left--
			}
		}
		for i, g := range groups {
			resize(g, shares[i])
		}
		return out, nil
	}
}

// resize sets the replicas of a group, and its bounds to hold them.
func resize(group map[string]any, n int64) {
	group["replicas"] = n
	if rules.Value(group, "minReplicas") != nil && rules.Number(group, "minReplicas") > n {
		group["minReplicas"] = n
	}
	if rules.Value(group, "maxReplicas") != nil && rules.Number(group, "maxReplicas") < n {
		group["maxReplicas"] = n
	}
}
