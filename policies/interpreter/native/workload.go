package native

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

var (
	replicasPath = []string{"spec", "replicas"}
	templatePath = []string{"spec", "template"}
)

// lostReplicas are the counts that say that replicas do their work. Replicas that are
// not heard of are there, and updated, as those of a node are that is lost.
var lostReplicas = []string{"readyReplicas", "availableReplicas"}

// replicaFailure returns how the condition merges that shows that pods cannot be
// created.
func replicaFailure(conditionType string) rules.Merge {
	return rules.Merge{Type: conditionType, Wanted: corev1.ConditionFalse}
}

// deploymentConditions are the conditions that tools wait for. Progressing is
// optional, as a Deployment without a deadline does not have it.
var deploymentConditions = []rules.Merge{
	{Type: string(appsv1.DeploymentAvailable)},
	{Type: string(appsv1.DeploymentProgressing), Optional: true, Done: "NewReplicaSetAvailable", Gravest: "ProgressDeadlineExceeded"},
	replicaFailure(string(appsv1.DeploymentReplicaFailure)),
}

func deployment() kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"}
	return kinds.Rules{
		Replicas: rules.Replicas(replicasPath, templatePath),
		Revise:   rules.ReviseAt(replicasPath...),
		Retain:   rules.RetainReplicas,
		Retains:  rules.RetainsReplicas,
		Reflect:  rules.WithConditions(rules.ReflectTracked(counts...), deploymentConditions...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), fitReplicas("updatedReplicas"), rules.Observe,
			rules.Conditions(deploymentConditions...), idle),
		Unheard:      rules.Unheard{All: "replicas", Unavailable: "unavailableReplicas", Lost: lostReplicas, Condition: string(appsv1.DeploymentAvailable)}.Rule(),
		Health:       rules.RolledOut(replicasPath...),
		Dependencies: rules.PodTemplateDependencies(templatePath...),
	}
}

// idle sets the conditions of a Deployment with zero replicas that is in no
// cluster: those that a controller sets on a Deployment that has all of its zero
// replicas.
func idle(status map[string]any, r rules.Reports) {
	if len(r.Parts) > 0 || rules.Value(r.Template.Object, replicasPath...) == nil || rules.Number(r.Template.Object, replicasPath...) != 0 {
		return
	}
	types := map[appsv1.DeploymentConditionType]string{appsv1.DeploymentAvailable: "MinimumReplicasAvailable"}
	if rules.Value(r.Template.Object, "spec", "progressDeadlineSeconds") != nil {
		types[appsv1.DeploymentProgressing] = "NewReplicaSetAvailable"
	}
	conditions := []any{}
	for _, t := range slices.Sorted(maps.Keys(types)) {
		conditions = append(conditions, map[string]any{"type": string(t), "status": string(corev1.ConditionTrue), "reason": types[t]})
	}
	rules.Conditions(deploymentConditions...)(status, rules.Reports{
		Template: r.Template, Parts: []rules.Part{{Status: map[string]any{"conditions": conditions}}},
	})
}

// fitReplicas lowers counts to what the API server accepts: no more replicas are
// ready than there are, nor available than are ready. The counts of clusters may
// contradict each other.
func fitReplicas(others ...string) rules.Step {
	all := rules.AtMost("replicas", append(others, "readyReplicas", "availableReplicas")...)
	ready := rules.AtMost("readyReplicas", "availableReplicas")
	return func(status map[string]any, r rules.Reports) {
		all(status, r)
		ready(status, r)
	}
}

func replicaSet() kinds.Rules {
	counts := []string{"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"}
	failure := replicaFailure(string(appsv1.ReplicaSetReplicaFailure))
	return kinds.Rules{
		Replicas: rules.Replicas(replicasPath, templatePath),
		Revise:   rules.ReviseAt(replicasPath...),
		Retain:   rules.RetainReplicas,
		Retains:  rules.RetainsReplicas,
		Reflect:  rules.WithConditions(rules.ReflectTracked(counts...), failure),
		Aggregate: rules.Aggregate(rules.Sum(counts...), fitReplicas("fullyLabeledReplicas"), rules.Observe,
			rules.Conditions(failure)),
		Unheard:      rules.Unheard{Lost: lostReplicas}.Rule(),
		Health:       replicaSetHealthy,
		Dependencies: rules.PodTemplateDependencies(templatePath...),
	}
}

func replicaSetHealthy(obj kinds.Object) (bool, error) {
	return rules.SpecObserved(obj) &&
		rules.Number(obj.Object, "status", "availableReplicas") >= rules.Number(obj.Object, replicasPath...), nil
}

func statefulSet() kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas"}
	return kinds.Rules{
		Replicas:     rules.Replicas(replicasPath, templatePath),
		Revise:       rules.ReviseAt(replicasPath...),
		Retain:       rules.RetainReplicas,
		Retains:      rules.RetainsReplicas,
		Reflect:      rules.ReflectTracked(append(counts, "currentRevision", "updateRevision")...),
		Aggregate:    rules.Aggregate(rules.Sum(counts...), fitReplicas("updatedReplicas", "currentReplicas"), rules.Observe, revisions),
		Unheard:      rules.Unheard{Lost: lostReplicas}.Rule(),
		Health:       statefulSetHealthy,
		Dependencies: statefulSetDependencies,
	}
}

// statefulSetHealthy counts as updated what its controller is to update by itself: nothing with the strategy OnDelete, and
// the replicas from the partition on with a partition. All replicas have to be available whatever they run.
func statefulSetHealthy(obj kinds.Object) (bool, error) {
	replicas := rules.Number(obj.Object, replicasPath...)
	updates := max(replicas-rules.Number(obj.Object, "spec", "updateStrategy", "rollingUpdate", "partition"), 0)
	if onDelete(obj) {
		updates = 0
	}
	updated := rules.Number(obj.Object, "status", "updatedReplicas")
	return rules.SpecObserved(obj) && updated >= updates &&
		rules.Number(obj.Object, "status", "availableReplicas") >= max(replicas, updated), nil
}

// onDelete reports whether a StatefulSet or a DaemonSet leaves it to others to replace its Pods: it deletes none.
func onDelete(obj kinds.Object) bool {
	return rules.Text(obj.Object, "spec", "updateStrategy", "type") == string(appsv1.OnDeleteStatefulSetStrategyType)
}

// revisions sets the revisions of the first cluster that is in an update, or else
// of the first cluster: the two are equal once the update has ended everywhere.
func revisions(status map[string]any, r rules.Reports) {
	current, update := "", ""
	for _, p := range r.Parts {
		from, to := rules.Text(p.Status, "currentRevision"), rules.Text(p.Status, "updateRevision")
		if update == "" || from != to && current == update {
			current, update = from, to
		}
	}
	for name, revision := range map[string]string{"currentRevision": current, "updateRevision": update} {
		delete(status, name)
		if revision != "" {
			status[name] = revision
		}
	}
}

// statefulSetDependencies leaves out the volume claims that the set makes from
// its own templates.
func statefulSetDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	own := map[string]bool{}
	for _, claim := range rules.Objects(obj.Object, "spec", "volumeClaimTemplates") {
		own[rules.Text(claim, "metadata", "name")] = true
	}
	deps, err := rules.PodTemplateDependencies(templatePath...)(obj)
	return slices.DeleteFunc(deps, func(d kinds.Dependency) bool {
		return d.Kind == "PersistentVolumeClaim" && own[d.Name]
	}), err
}

func daemonSet() kinds.Rules {
	counts := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
		"numberReady", "updatedNumberScheduled", "numberUnavailable",
	}
	return kinds.Rules{
		Reflect:      rules.ReflectTracked(counts...),
		Aggregate:    rules.Aggregate(rules.Sum(counts...), rules.Observe),
		Unheard:      rules.Unheard{All: "desiredNumberScheduled", Unavailable: "numberUnavailable", Lost: []string{"numberReady", "numberAvailable"}}.Rule(),
		Health:       daemonSetHealthy,
		Dependencies: rules.PodTemplateDependencies(templatePath...),
	}
}

func daemonSetHealthy(obj kinds.Object) (bool, error) {
	updated, desired := rules.Number(obj.Object, "status", "updatedNumberScheduled"), rules.Number(obj.Object, "status", "desiredNumberScheduled")
	return rules.SpecObserved(obj) && (updated >= desired || onDelete(obj)) &&
		rules.Number(obj.Object, "status", "numberAvailable") >= max(desired, updated), nil
}
