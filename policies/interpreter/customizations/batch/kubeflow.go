package batch

import (
	"maps"
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kubeflow returns the rules for Kubeflow's notebooks and training jobs.
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

// trainingJob returns the rules for a job whose pods play several roles, which
// stand below roleSpecs. middle merges the conditions of clusters; steps are
// taken after those that all training jobs share. The time of the last reconcile
// is left out, as it changes without anything having happened.
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

// mpiJob returns the rules for an MPIJob. Other than for a trainingJob, the names
// of its roles keep their case, a role without a pod template does not count, and
// there are no workers where their number is not set.
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

// trainingGrade grades by the conditions of a job: as soon as there are any, a
// controller has taken the job up.
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
		// A notebook is one pod, also while it is stopped: with no replicas it
		// would be removed from its cluster, where its volume is.
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

// notebookGrade grades by the state of the container. A container that has ended
// without an error is not what a notebook should be, but another cluster would
// not do better: it waits.
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

// stopped reports whether the notebook was stopped in its dashboard, which sets
// an annotation with the time.
func stopped(obj kinds.Object) bool { return obj.GetAnnotations()["kubeflow-resource-stopped"] != "" }

// notebookState sets the state of the container that is furthest from running.
// For a notebook in several clusters that was not stopped, it sets one state and
// one condition for all of them: running where it runs in every cluster, else
// failed with the names of those in which it does not.
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
