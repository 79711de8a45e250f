package batch

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// ray returns the rules for the kinds of KubeRay: clusters, which have a head and
// groups of workers, and jobs and services, which bring a cluster with them.
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
		Reflect: rules.ReflectTracked(slices.Concat(counts, amounts, []string{"state", "reason", "conditions", "endpoints",
			"head", "stateTransitionTimes"})...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Amounts(amounts...),
			rules.Worst("state", "", "failed", "unhealthy", rules.Others, "", "suspended", "ready"), rules.Quote("reason"),
			rules.EveryCondition("ReplicaFailure", "RayClusterReplicaFailure", "RayClusterSuspending",
				"RayClusterSuspended"), rules.First("head", "endpoints"), lone("stateTransitionTimes"), rules.Observe),
		Dependencies: rayPods("spec"),
	}, rayGrade)
}

// rayGrade grades by the conditions of a cluster, or by its state where the
// operator is too old to set conditions.
func rayGrade(obj kinds.Object) words.Grade {
	const state = "status.state"
	conditions := rules.List(obj.Object, "status", "conditions")
	modern := rules.Condition(conditions, "HeadPodReady") != nil || rules.Condition(conditions, "RayClusterProvisioned") != nil
	runs := words.Word(state, "ready")
	if modern {
		runs = words.IsTrue("HeadPodReady", "RayClusterProvisioned")
	}
	suspended := words.OneOf(words.IsTrue("RayClusterSuspended"), words.Word(state, "suspended"))
	switch {
	case !words.Meets(words.NotTrue("RayClusterReplicaFailure", "ReplicaFailure"), obj):
		return words.Failing
	case words.Meets(words.All(words.Current, words.OneOf(runs, words.All(words.Asks("spec.suspend"), suspended))), obj):
		return words.Fine
	case words.Meets(words.OneOf(runs, suspended, words.IsTrue("RayClusterSuspending")), obj), modern && words.Meets(words.NotTrue("RayClusterProvisioned"), obj):
		return words.Waiting
	case modern || words.Meets(words.Word(state, "", "failed", "unhealthy"), obj):
		return words.Failing
	default:
		return words.Waiting
	}
}

// retainWorkers copies from the member how many workers its autoscaler wants, and
// which of them are to be removed. They are copied rather than left out, because
// the list of groups can only be applied as a whole.
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
	deployment := []string{
		"Failed", "ValidationFailed", rules.Others, "Complete", "Running", "Retrying", "Suspending", "Suspended", "Waiting", "Initializing",
	}
	job := []string{"FAILED", "STOPPED", rules.Others, "SUCCEEDED", "RUNNING", "PENDING"}
	counts := []string{"succeeded", "failed"}
	return words.Graded(kinds.Rules{
		Components: rayRoles("spec.rayClusterSpec"),
		Reflect: rules.ReflectTracked(append(counts, "jobStatus", "jobDeploymentStatus", "jobId", "rayClusterName", "message", "reason",
			"startTime", "endTime", "dashboardURL")...),
		Aggregate: rules.Aggregate(rules.Worst("jobDeploymentStatus", "", deployment...), rules.Worst("jobStatus", "", job...),
			rules.Sum(counts...),
			rules.TextOfWorst("reason", "jobDeploymentStatus", "", deployment...), rules.TextOfWorst("message", "jobDeploymentStatus", "", deployment...),
			rules.Same("jobId", "rayClusterName"), lone("dashboardURL"), rules.Earliest("startTime"), rules.Ended("endTime"), rules.Observe),
		Dependencies: words.Needs(rayPods("spec.rayClusterSpec"), words.Pods("spec.submitterPodTemplate.spec")),
	}, rayJobGrade)
}

// rayJobGrade grades by how far the operator has got with a job and, once the job
// runs, by the job's own status.
func rayJobGrade(obj kinds.Object) words.Grade {
	const state, job = "status.jobDeploymentStatus", "status.jobStatus"
	switch {
	case words.Meets(words.OneOf(words.Word(state, "", "Failed", "ValidationFailed"), words.All(words.Word(state, "Running", "Complete"), words.Word(job, "FAILED", "STOPPED"))), obj):
		return words.Failing
	case words.Meets(words.All(words.Current, words.OneOf(words.Word(state, "Running", "Complete"), words.All(words.Asks("spec.suspend"), words.Word(state, "Suspended")))), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

// lone sets fields to what the only cluster reports, and removes them where there
// are several.
func lone(fields ...string) rules.Step {
	return func(status map[string]any, r rules.Reports) {
		for _, field := range fields {
			delete(status, field)
			if len(r.Parts) == 1 && r.Parts[0].Status[field] != nil {
				status[field] = r.Parts[0].Status[field]
			}
		}
	}
}

// rayService returns the rules for a RayService, whose pods are divided: a head,
// which every cluster needs, and workers. It has no components, as those would
// give each cluster a whole set.
func rayService() kinds.Rules {
	const path = "spec.rayClusterConfig"
	return kinds.Rules{
		Replicas: servicePods(path),
		Revise:   reviseWorkers(path),
		Reflect: rules.ReflectTracked("serviceStatus", "numServeEndpoints", "conditions", "activeServiceStatus",
			"pendingServiceStatus"),
		Health: words.All(words.Current, words.NotTrue("RayServiceFailed"), words.OneOf(words.IsTrue("Ready"), words.Word("status.serviceStatus", "Running"))),
		Aggregate: rules.Aggregate(rules.Worst("serviceStatus", "", "FailedToGetOrCreateRayCluster", "FailedServeDeploy",
			"FailedToUpdateIngress", "FailedToUpdateServingPodLabel", "FailedToUpdateService",
			"WaitForServeDeploymentReady", "WaitForDashboard", "WaitForDashboardReady", "Restarting", rules.Others, "", "Running"),
			rules.Sum("numServeEndpoints"), rules.EveryCondition("UpgradeInProgress"), rules.First("activeServiceStatus", "pendingServiceStatus"),
			applications, rules.Observe),
		Dependencies: rayPods(path),
	}
}

// rayPods returns a rule that finds what the head and the workers of the cluster
// at a path need.
func rayPods(path string) words.Need {
	return words.Pods(path+".headGroupSpec.template.spec", path+"."+workerGroups+".*.template.spec")
}

// rayRoles returns a rule for the components of the cluster at a path: its head
// and its groups of workers.
func rayRoles(path string) func(kinds.Object) (words.Components, error) {
	return func(obj kinds.Object) (words.Components, error) {
		cluster := rules.Object(obj.Object, words.At(path)...)
		if cluster == nil {
			return nil, nil // a job that runs in a cluster that exists already
		}
		r := words.Roster{Namespace: obj.GetNamespace()}
		if rules.Object(cluster, "headGroupSpec", "template") != nil {
			r.Pods("ray-head", 1, rules.Object(cluster, "headGroupSpec", "template", "spec"))
		}
		for i, group := range rules.Objects(cluster, workerGroups) {
			name := cmp.Or(rules.Text(group, "groupName"), fmt.Sprintf("worker-%d", i+1))
			r.Pods(name, rules.Product(groupSize(group), words.CountOr(1, group, "numOfHosts")), rules.Object(group, "template", "spec"))
		}
		return r.Result()
	}
}

// groupSize returns how many replicas a group of workers starts with; zero for a
// suspended group.
func groupSize(group map[string]any) int64 {
	if rules.Bool(group, "suspend") {
		return 0
	}
	return min(max(rules.Number(group, "replicas"), rules.Number(group, "minReplicas")), math.MaxInt32)
}

// servicePods returns a rule that counts the head and the replicas of all groups.
// Each pod is taken to need what the head needs, and at least as much cpu and
// memory as a worker of any group.
func servicePods(path string) func(kinds.Object) (int32, *words.Needed, error) {
	return func(obj kinds.Object) (int32, *words.Needed, error) {
		cluster := rules.Object(obj.Object, words.At(path)...)
		if rules.Object(cluster, "headGroupSpec", "template") == nil {
			return 0, nil, nil
		}
		need, err := words.Requirements(obj.GetNamespace(), rules.Object(cluster, "headGroupSpec", "template", "spec"))
		if err != nil {
			return 0, nil, err
		}
		n := int64(1)
		for _, group := range rules.Objects(cluster, workerGroups) {
			size, err := rules.Count(map[string]any{"replicas": groupSize(group)}, "replicas")
			if err != nil {
				return 0, nil, err
			}
			req, err := words.Requirements(obj.GetNamespace(), rules.Object(group, "template", "spec"))
			if err != nil {
				return 0, nil, err
			}
			n += int64(size)
			need = raised(obj.GetNamespace(), need, req)
		}
		return int32(min(n, math.MaxInt32)), need, nil
	}
}

// raised returns need with its cpu and memory raised to those of other.
func raised(namespace string, need, other *words.Needed) *words.Needed {
	if other == nil {
		return need
	}
	more := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := other.ResourceRequest[name]; ok {
			more[name] = q
		}
	}
	if len(more) == 0 {
		return need
	}
	if need == nil {
		need = &words.Needed{Namespace: namespace}
	}
	need.ResourceRequest = rules.Most(need.ResourceRequest, more)
	return need
}

// reviseWorkers returns a rule that takes one replica for the head, and shares
// the rest out over the groups of workers in proportion to their sizes, evenly
// where no group has a size. Suspended groups stay as they are.
func reviseWorkers(path string) func(kinds.Object, int32) (kinds.Object, error) {
	return func(obj kinds.Object, n int32) (kinds.Object, error) {
		out := obj.DeepCopy()
		groups := rules.Objects(out.Object, append(words.At(path), workerGroups)...)
		groups = slices.DeleteFunc(groups, func(g map[string]any) bool { return rules.Bool(g, "suspend") })
		if len(groups) == 0 {
			return obj, nil
		}
		sizes := make([]int64, len(groups))
		for i, g := range groups {
			sizes[i] = max(groupSize(g), 0)
		}
		for i, share := range divide(max(int64(n)-1, 0), sizes) {
			resize(groups[i], share)
		}
		return out, nil
	}
}

// divide shares workers out in proportion to sizes. Shares are rounded, and the
// last group gets what is left, so that they add up to workers.
func divide(workers int64, sizes []int64) []int64 {
	var sum int64
	for _, size := range sizes {
		sum += size
	}
	shares, count := make([]int64, len(sizes)), int64(len(sizes))
	left := workers
	for i, size := range sizes {
		switch {
		case sum == 0:
			shares[i] = workers / count
			if int64(i) < workers%count {
				shares[i]++
			}
		case i == len(sizes)-1:
			shares[i] = left
		default:
			shares[i] = min((2*workers*size+sum)/(2*sum), left) // rounded half up
			left -= shares[i]
		}
	}
	return shares
}

// resize sets the replicas of a group, and widens minReplicas and maxReplicas
// where they would not allow them.
func resize(group map[string]any, n int64) {
	group["replicas"] = n
	if rules.Value(group, "minReplicas") != nil && rules.Number(group, "minReplicas") > n {
		group["minReplicas"] = n
	}
	if rules.Value(group, "maxReplicas") != nil && rules.Number(group, "maxReplicas") < n {
		group["maxReplicas"] = n
	}
}

// applicationStates are the states of a service's application, from the worst to
// the best.
var applicationStates = []string{"DEPLOY_FAILED", "UNHEALTHY", rules.Others, "DELETING", "DEPLOYING", "NOT_STARTED", "RUNNING"}

// mostApplications is how many applications of a service the status of a template
// lists.
const mostApplications = 100

// applications sets the applications of the active service to those that any
// cluster reports, each as the cluster reports it in which its state is the
// worst.
func applications(status map[string]any, r rules.Reports) {
	const field, path = "activeServiceStatus", "applicationStatuses"
	active := rules.Object(status, field)
	if active == nil {
		delete(status, field)
		return
	}
	names := map[string]bool{}
	for _, p := range r.Parts {
		for name := range rules.Object(p.Status, field, path) {
			names[name] = true
		}
	}
	all := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(names))[:min(len(names), mostApplications)] {
		below := rules.Reports{Template: r.Template}
		for _, p := range r.Parts {
			if app := rules.Object(p.Status, field, path, name); app != nil {
				below.Parts = append(below.Parts, rules.Part{Cluster: p.Cluster, Status: map[string]any{"app": app}})
			}
		}
		one := map[string]any{}
		rules.FromWorst("app", "app.status", "", append(slices.Clone(applicationStates), "")...)(one, below)
		if one["app"] != nil {
			all[name] = one["app"]
		}
	}
	out := maps.Clone(active)
	delete(out, path)
	if len(all) > 0 {
		out[path] = all
	}
	status[field] = out
}
