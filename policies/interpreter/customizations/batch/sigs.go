package batch

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// sigs returns the rules for batch workloads of Kubernetes' own interest groups.
func sigs() kinds.Table {
	return kinds.Table{
		words.Kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): leaderWorkerSet(),
		words.Kind("jobset.x-k8s.io/v1alpha2", "JobSet"):             jobSet(),
	}
}

// leaderWorkerSet returns the rules for a LeaderWorkerSet, each of whose replicas
// is a group of pods: a leader and its workers.
func leaderWorkerSet() kinds.Rules {
	counts := []string{"replicas", "readyReplicas", "updatedReplicas"}
	return kinds.Rules{
		Replicas:   groupReplicas,
		Components: groupRoles,
		Revise:     rules.ReviseAt("spec", "replicas"),
		Retain:     rules.RetainReplicas,
		Retains:    rules.RetainsReplicas,
		Reflect:    rules.ReflectTracked(append(counts, "conditions", "hpaPodSelector")...),
		Health: words.All(words.Current, words.IsTrue("Available"), words.NotTrue("UpdateInProgress"), words.Enough("status.readyReplicas", "spec.replicas", 1),
			words.Enough("status.updatedReplicas", "spec.replicas", 1)),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition("Progressing", "UpdateInProgress"),
			rules.Same("hpaPodSelector")),
		Dependencies: words.Pods("spec.leaderWorkerTemplate.*Template.spec"),
	}
}

// groupReplicas counts the groups, each of which needs what all its pods need
// together.
func groupReplicas(obj kinds.Object) (int32, *words.Needed, error) {
	parts, err := groupRoles(obj)
	if err != nil {
		return 0, nil, err
	}
	groups := words.CountOr(1, obj.Object, "spec", "replicas")
	need := &words.Needed{Namespace: obj.GetNamespace()}
	for _, part := range parts {
		req := part.ReplicaRequirements
		if req == nil {
			continue
		}
		if need.NodeClaim == nil {
			need.NodeClaim = req.NodeClaim
		}
		pods := int64(1)
		if part.Name == "worker" {
			pods = groupWorkers(obj)
		}
		scaled := corev1.ResourceList{}
		for name, q := range req.ResourceRequest {
			q.Mul(pods) // Mul reports false for a large result, which is no fault
			scaled[name] = q
		}
		need = words.Plus(obj.GetNamespace(), need, scaled)
	}
	if need.NodeClaim == nil && need.ResourceRequest == nil {
		need = nil
	}
	return int32(groups), need, nil
}

// groupWorkers returns how many workers a group has in addition to its leader.
func groupWorkers(obj kinds.Object) int64 {
	return max(words.CountOr(1, obj.Object, "spec", "leaderWorkerTemplate", "size")-1, 0)
}

func groupRoles(obj kinds.Object) (words.Components, error) {
	groups := words.CountOr(1, obj.Object, "spec", "replicas")
	worker := rules.Object(obj.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")
	leader := rules.Object(obj.Object, "spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
	if leader == nil {
		leader = worker
	}
	r := words.Roster{Namespace: obj.GetNamespace()}
	r.Pods("leader", groups, leader)
	if n := groupWorkers(obj); n > 0 {
		r.Pods("worker", rules.Product(groups, n), worker)
	}
	return r.Result()
}

func jobSet() kinds.Rules {
	return words.Graded(kinds.Rules{
		Components: words.Tasks("spec.replicatedJobs", "template.spec.template", func(job map[string]any) int64 {
			return rules.Product(words.CountOr(1, job, "replicas"), words.CountOr(1, job, "template", "spec", "parallelism"))
		}),
		Reflect: rules.Reflect("conditions", "restarts", "restartsCountTowardsMax", "terminalState", "replicatedJobsStatus"),
		Aggregate: rules.Aggregate(
			rules.Entries("replicatedJobsStatus", 1000, []string{"name"}, rules.Sum("ready", "succeeded", "failed", "active", "suspended")),
			rules.Sum("restarts", "restartsCountTowardsMax"), rules.Worst("terminalState", "", "Failed", rules.Others, "", "Completed"),
			rules.EveryCondition("StartupPolicyInProgress")),
		Dependencies: words.Pods("spec.replicatedJobs.*.template.spec.template.spec"),
	}, jobSetGrade)
}

func jobSetGrade(obj kinds.Object) words.Grade {
	switch {
	case !words.Meets(words.NotTrue("Failed"), obj) || rules.Object(obj.Object, "status") == nil:
		return words.Failing
	case words.Meets(words.OneOf(words.IsTrue("Completed"), words.All(words.Asks("spec.suspend"), words.IsTrue("Suspended")), jobsRun), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

// jobsRun reports whether all jobs of a set are ready or have succeeded.
func jobsRun(obj kinds.Object) (bool, error) {
	ready := map[string]int64{}
	for _, s := range rules.Objects(obj.Object, "status", "replicatedJobsStatus") {
		ready[rules.Text(s, "name")] = rules.Number(s, "ready") + rules.Number(s, "succeeded")
	}
	for _, job := range rules.Objects(obj.Object, "spec", "replicatedJobs") {
		if ready[rules.Text(job, "name")] < words.CountOr(1, job, "replicas") {
			return false, nil
		}
	}
	return len(ready) > 0, nil
}
