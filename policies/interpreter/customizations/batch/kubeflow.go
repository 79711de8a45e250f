package batch

import (
	"maps"
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kubeflow is Kubeflow's notebooks and training jobs.
func kubeflow() kinds.Table {
	const v1, v2beta1 = "kubeflow.org/v1", "kubeflow.org/v2beta1"
	t := kinds.Table{
		words.Kind(v1, "PyTorchJob"):  trainingJob("spec.pytorchReplicaSpecs", merged),
		words.Kind(v1, "TFJob"):       trainingJob("spec.tfReplicaSpecs", merged),
		words.Kind(v1, "XGBoostJob"):  trainingJob("spec.xgbReplicaSpecs", merged),
		words.Kind(v1, "PaddleJob"):   trainingJob("spec.paddleReplicaSpecs", merged),
		words.Kind(v1, "JAXJob"):      trainingJob("spec.jaxReplicaSpecs", merged),
		words.Kind(v1, "MPIJob"):      mpiJob(merged),
		words.Kind(v2beta1, "MPIJob"): mpiJob(newestOf, rules.Latest("completionTime")),
	}
	words.Served(t, "kubeflow.org", []string{"v1", "v1beta1", "v1alpha1"}, "Notebook", notebook())
	return t
}

// trainingJob is a job of which pods play several roles. When it was last
// looked at is no news. The steps come last.
func trainingJob(roleSpecs string, middle merger, steps ...rules.Step) kinds.Rules {
	all := append([]rules.Step{
		trainingConditions(middle), rules.SumByName("replicaStatuses"), rules.Earliest("startTime"), completed,
		rules.Default(map[string]any{"conditions": []any{}}),
	}, steps...)
	return words.Graded(kinds.Rules{
		Components:   words.Roles(roleSpecs),
		Reflect:      rules.Reflect("conditions", "replicaStatuses", "startTime", "completionTime"),
		Aggregate:    rules.Aggregate(all...),
		Dependencies: words.Pods(roleSpecs + ".*.template.spec"),
	}, trainingGrade)
}

// mpiJob has roles that are named as they are written; those without pods of their
// own are none, and workers are only as many as are asked for.
func mpiJob(middle merger, steps ...rules.Step) kinds.Rules {
	const roleSpecs = "spec.mpiReplicaSpecs"
	r := trainingJob(roleSpecs, middle, steps...)
	r.Components = func(obj kinds.Object) (words.Components, error) {
		roster := words.Roster{Namespace: obj.GetNamespace()}
		all := rules.Object(obj.Object, words.At(roleSpecs)...)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			role := rules.Object(all, name)
			if rules.Object(role, "template") == nil {
				continue
			}
			none := int64(1)
			if name == "Worker" {
				none = 0
			}
			roster.Pods(name, words.CountOr(none, role, "replicas"), rules.Object(role, "template", "spec"))
		}
		return roster.Result()
	}
	return r
}

// trainingGrade goes by the conditions of a job: once it has any, it was taken up.
func trainingGrade(obj kinds.Object) words.Grade {
	switch {
	case len(rules.Objects(obj.Object, "status", "conditions")) == 0 || !words.Meets(words.NotTrue("Failed"), obj):
		return words.Failing
	case words.Meets(words.OneOf(words.IsTrue("Running"), words.IsTrue("Succeeded"), words.All(words.Asks("spec.runPolicy.suspend"), words.IsTrue("Suspended"))), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

func notebook() kinds.Rules {
	return words.Graded(kinds.Rules{
		// A notebook is one pod. One that was stopped is no less: it would leave its
		// cluster, and the volume that it has there.
		Replicas: func(obj kinds.Object) (int32, *words.Needed, error) {
			req, err := words.Requirements(obj.GetNamespace(), rules.Object(obj.Object, "spec", "template", "spec"))
			return 1, req, err
		},
		Reflect: rules.Reflect("readyReplicas", "containerState", "conditions"),
		Aggregate: rules.Aggregate(rules.Sum("readyReplicas"), rules.EveryCondition("Waiting", "Terminated"), notebookState,
			rules.Default(map[string]any{"conditions": []any{}, "containerState": map[string]any{}})),
		Dependencies: words.Pods("spec.template.spec"),
	}, notebookGrade)
}

// notebookGrade goes by the container. One that has ended well has ended all the
// same, but not for want of anything here.
func notebookGrade(obj kinds.Object) words.Grade {
	state := rules.Object(obj.Object, "status", "containerState")
	ended := rules.Object(state, "terminated")
	switch {
	case stopped(obj):
		return words.Fine
	case rules.Object(state, "running") != nil:
		if rules.Number(obj.Object, "status", "readyReplicas") > 0 {
			return words.Fine
		}
		return words.Waiting
	case slices.Contains([]string{"ContainerCreating", "PodInitializing"}, rules.Text(state, "waiting", "reason")):
		return words.Waiting
	case rules.Value(ended, "exitCode") != nil && rules.Number(ended, "exitCode") == 0 &&
		!slices.Contains([]string{"Error", "OOMKilled", "ContainerCannotRun"}, rules.Text(ended, "reason")):
		return words.Waiting
	default:
		return words.Failing
	}
}

// stopped reports whether the notebook was stopped in its dashboard, which notes
// down when.
func stopped(obj kinds.Object) bool { return obj.GetAnnotations()["kubeflow-resource-stopped"] != "" }

// notebookState shows the container that is furthest from running. Of a notebook
// in several clusters, unless it was stopped, it reports whether it runs in all of them.
func notebookState(status map[string]any, r rules.Reports) {
	delete(status, "containerState")
	if len(r.Parts) < 2 || stopped(r.Template) {
		for _, state := range []string{"terminated", "waiting", "running"} {
			for _, p := range r.Parts {
				if s := rules.Object(p.Status, "containerState"); rules.Object(s, state) != nil {
					status["containerState"] = s
					return
				}
			}
		}
		return
	}
	var idle []string
	last, started := map[string]any{}, ""
	for _, p := range r.Parts {
		state := rules.Object(p.Status, "containerState")
		if rules.Object(state, "running") == nil {
			idle, last = append(idle, p.Cluster), state
		}
		started = max(started, rules.Time(state, "running", "startedAt"))
	}
	if len(idle) == 0 {
		running := map[string]any{}
		if started != "" {
			running["startedAt"] = started
		}
		status["containerState"] = map[string]any{"running": running}
		status["conditions"] = []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}}
		return
	}
	if len(last) == 0 {
		last = map[string]any{"waiting": map[string]any{"reason": "Unschedulable"}}
	}
	status["containerState"] = last
	status["conditions"] = []any{map[string]any{
		"type": "Failed", "status": "True", "reason": "NotebookFailed", "message": "Notebook does not run in clusters: " + rules.Names(idle),
	}}
}
