package native

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// podConditions are the conditions that every pod has.
var podConditions = []rules.Merge{
	{Type: string(corev1.PodScheduled)}, {Type: string(corev1.PodInitialized)},
	{Type: string(corev1.ContainersReady)}, {Type: string(corev1.PodReady)},
}

func pod() kinds.Rules {
	return kinds.Rules{
		Replicas: podReplicas,
		Retain:   retainPod,
		Reflect:  reflectPod,
		Health:   podHealthy,
		Aggregate: rules.Aggregate(
			rules.Phase(string(corev1.PodPending), string(corev1.PodFailed), rules.Others, string(corev1.PodPending), string(corev1.PodRunning), string(corev1.PodSucceeded)),
			containers, rules.Observe, rules.Conditions(podConditions...)),
		Dependencies: rules.PodSpecDependencies("spec"),
	}
}

// reflectPod reports the whole status of a pod. Kubelets before 1.34 do not set
// the observed generation; then the generation is left out too, so that the
// status does not count as outdated.
func reflectPod(observed kinds.Object) (map[string]any, error) {
	status, err := rules.Track(rules.ReflectAll)(observed)
	if status != nil && status[rules.FieldObservedGeneration] == nil {
		delete(status, rules.FieldGeneration)
	}
	return status, err
}

func podReplicas(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	req, err := rules.Requirements(obj.GetNamespace(), rules.Object(obj.Object, "spec"))
	return 1, req, err
}

func podHealthy(obj kinds.Object) (bool, error) {
	switch corev1.PodPhase(rules.Text(obj.Object, "status", "phase")) {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodRunning:
		return rules.ConditionTrue(rules.List(obj.Object, "status", "conditions"), string(corev1.PodReady)), nil
	default:
		return false, nil
	}
}

// retainPod keeps the node and the service account of the pod in the member.
// Volumes and mounts that the member adds are kept by server-side apply itself,
// as it applies their lists entry by entry.
func retainPod(desired, observed kinds.Object) (kinds.Object, error) {
	out, err := rules.DropChanged("spec", "nodeName")(desired, observed)
	if err != nil {
		return nil, err
	}
	if out, err = rules.DropChanged("spec", "serviceAccountName")(out, observed); err != nil {
		return nil, err
	}
	return rules.DropChanged("spec", "serviceAccount")(out, observed)
}

// containers lists every container in every cluster, with its state and whether
// it is ready.
func containers(status map[string]any, r rules.Reports) {
	out := []any{}
	for _, p := range r.Parts {
		for _, c := range rules.Objects(p.Status, "containerStatuses") {
			out = append(out, containerStatus(c, p.Cluster, status, r))
		}
	}
	if len(out) > 0 || status["containerStatuses"] != nil {
		status["containerStatuses"] = out
	}
}

// containerStatus returns the status of a container, with its cluster before its
// name where there are several. The API server refuses to move a container out of
// the terminated state, so that state is reported only once the container cannot
// be restarted, and kept from then on.
func containerStatus(c map[string]any, cluster string, status map[string]any, r rules.Reports) map[string]any {
	name := rules.Text(c, "name")
	out := map[string]any{"name": name, "ready": rules.Bool(c, "ready"), "image": "", "imageID": "", "restartCount": int64(0)}
	if len(r.Parts) > 1 {
		out["name"] = cluster + "/" + name
	}
	state, ok := rules.Canonical[corev1.ContainerState](rules.Object(c, "state"))
	if !ok || state["terminated"] != nil && !final(r.Template, name, state) {
		state = nil
	}
	for _, was := range rules.Objects(status, "containerStatuses") {
		if was["name"] == out["name"] && rules.Value(was, "state", "terminated") != nil && state["terminated"] == nil {
			state = rules.Object(was, "state")
		}
	}
	if len(state) > 0 {
		out["state"] = state
	}
	return out
}

// final reports whether a container that has terminated will not be restarted.
func final(template kinds.Object, name string, state map[string]any) bool {
	for _, c := range rules.Objects(template.Object, "spec", "containers") {
		if c["name"] == name && (c["restartPolicy"] != nil || c["restartPolicyRules"] != nil) {
			return false
		}
	}
	switch corev1.RestartPolicy(rules.Text(template.Object, "spec", "restartPolicy")) {
	case corev1.RestartPolicyNever:
		return true
	case corev1.RestartPolicyOnFailure:
		return rules.Number(state, "terminated", "exitCode") == 0
	default:
		return false
	}
}
