package customizations

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// sigs is batch workloads of Kubernetes' own interest groups.
func sigs() kinds.Table {
	return kinds.Table{
		kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): leaderWorkerSet(),
		kind("jobset.x-k8s.io/v1alpha2", "JobSet"):             jobSet(),
	}
}

// leaderWorkerSet has groups of pods for replicas: a leader and its workers.
func leaderWorkerSet() kinds.Rules {
	counts := []string{"replicas", "readyReplicas", "updatedReplicas"}
	return kinds.Rules{
		Replicas:   groupReplicas,
		Components: groupRoles,
		Revise:     rules.ReviseAt("spec", "replicas"),
		Retain:     rules.RetainReplicas,
		Retains:    rules.RetainsReplicas,
		Reflect:    rules.ReflectTracked(append(counts, "conditions", "hpaPodSelector")...),
		Health: all(current, isTrue("Available"), notTrue("UpdateInProgress"), enough("status.readyReplicas", "spec.replicas", 1),
			enough("status.updatedReplicas", "spec.replicas", 1)),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.EveryCondition("Progressing", "UpdateInProgress"),
			rules.Same("hpaPodSelector")),
		Dependencies: pods("spec.leaderWorkerTemplate.*Template.spec"),
	}
}

// groupReplicas counts groups, each of which needs what all its pods do.
func groupReplicas(obj kinds.Object) (int32, *needed, error) {
	parts, err := groupRoles(obj)
	if err != nil {
		return 0, nil, err
	}
	groups := countOr(1, obj.Object, "spec", "replicas")
	need := &needed{Namespace: obj.GetNamespace()}
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
			q.Mul(pods) // false tells that it is large, not that it is wrong
			scaled[name] = q
		}
		need = plus(obj.GetNamespace(), need, scaled)
	}
	if need.NodeClaim == nil && need.ResourceRequest == nil {
		need = nil
	}
	return int32(groups), need, nil
}

// groupWorkers is how many workers a group has beside its leader.
func groupWorkers(obj kinds.Object) int64 {
	return max(countOr(1, obj.Object, "spec", "leaderWorkerTemplate", "size")-1, 0)
}

func groupRoles(obj kinds.Object) (components, error) {
	groups := countOr(1, obj.Object, "spec", "replicas")
	worker := rules.Object(obj.Object, "spec", "leaderWorkerTemplate", "workerTemplate", "spec")
	leader := rules.Object(obj.Object, "spec", "leaderWorkerTemplate", "leaderTemplate", "spec")
	if leader == nil {
		leader = worker
	}
	r := roster{namespace: obj.GetNamespace()}
	r.pods("leader", groups, leader)
	if n := groupWorkers(obj); n > 0 {
		r.pods("worker", rules.Product(groups, n), worker)
	}
	return r.result()
}

func jobSet() kinds.Rules {
	return graded(kinds.Rules{
		Components: tasks("spec.replicatedJobs", "template.spec.template", func(job map[string]any) int64 {
			return rules.Product(countOr(1, job, "replicas"), countOr(1, job, "template", "spec", "parallelism"))
		}),
		Reflect: rules.Reflect("conditions", "restarts", "restartsCountTowardsMax", "terminalState", "replicatedJobsStatus"),
		Aggregate: rules.Aggregate(
			rules.Entries("replicatedJobsStatus", 1000, []string{"name"}, rules.Sum("ready", "succeeded", "failed", "active", "suspended")),
			rules.Sum("restarts", "restartsCountTowardsMax"), rules.Worst("terminalState", "", "Failed", rules.Others, "", "Completed"),
			rules.EveryCondition("StartupPolicyInProgress")),
		Dependencies: pods("spec.replicatedJobs.*.template.spec.template.spec"),
	}, jobSetGrade)
}

func jobSetGrade(obj kinds.Object) grade {
	switch {
	case !says(notTrue("Failed"), obj) || rules.Object(obj.Object, "status") == nil:
		return failing
	case says(oneOf(isTrue("Completed"), all(asks("spec.suspend"), isTrue("Suspended")), jobsRun), obj):
		return fine
	default:
		return waiting
	}
}

// jobsRun asks that all jobs of a set are ready or have succeeded.
func jobsRun(obj kinds.Object) (bool, error) {
	said := map[string]int64{}
	for _, s := range rules.Objects(obj.Object, "status", "replicatedJobsStatus") {
		said[rules.Text(s, "name")] = rules.Number(s, "ready") + rules.Number(s, "succeeded")
	}
	for _, job := range rules.Objects(obj.Object, "spec", "replicatedJobs") {
		if said[rules.Text(job, "name")] < countOr(1, job, "replicas") {
			return false, nil
		}
	}
	return len(said) > 0, nil
}
