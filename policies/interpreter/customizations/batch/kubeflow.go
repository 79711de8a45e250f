package batch

import (
	"slices"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kubeflow is Kubeflow's notebooks and training jobs.
func kubeflow() kinds.Table {
	const v1, v2beta1 = "kubeflow.org/v1", "kubeflow.org/v2beta1"
	t := kinds.Table{
		words.Kind(v1, "PyTorchJob"):  trainingJob("spec.pytorchReplicaSpecs"),
		words.Kind(v1, "TFJob"):       trainingJob("spec.tfReplicaSpecs"),
		words.Kind(v1, "XGBoostJob"):  trainingJob("spec.xgbReplicaSpecs"),
		words.Kind(v1, "PaddleJob"):   trainingJob("spec.paddleReplicaSpecs"),
		words.Kind(v1, "JAXJob"):      trainingJob("spec.jaxReplicaSpecs"),
		words.Kind(v1, "MPIJob"):      trainingJob("spec.mpiReplicaSpecs"),
		words.Kind(v2beta1, "MPIJob"): trainingJob("spec.mpiReplicaSpecs"),
	}
	words.Served(t, "kubeflow.org", []string{"v1", "v1beta1", "v1alpha1"}, "Notebook", notebook())
	return t
}

// trainingJob is a job of which pods play several roles. When it was last
// looked at is no news.
func trainingJob(roleSpecs string) kinds.Rules {
	return words.Graded(kinds.Rules{
		Components: words.Roles(roleSpecs),
		Reflect:    rules.Reflect("conditions", "replicaStatuses", "startTime", "completionTime"),
		Aggregate: rules.Aggregate(rules.EveryCondition("Running", "Restarting"), rules.Tally("replicaStatuses"),
			rules.Earliest("startTime"), rules.Ended("completionTime"),
			rules.Default(map[string]any{"conditions": []any{}})),
		Dependencies: words.Pods(roleSpecs + ".*.template.spec"),
	}, trainingGrade)
}

// trainingGrade goes by the conditions of a job: once it has any, it was taken up.
func trainingGrade(obj kinds.Object) words.Grade {
	switch {
	case len(rules.Objects(obj.Object, "status", "conditions")) == 0 || !words.Says(words.NotTrue("Failed"), obj):
		return words.Failing
	case words.Says(words.OneOf(words.IsTrue("Running"), words.IsTrue("Succeeded"), words.All(words.Asks("spec.runPolicy.suspend"), words.IsTrue("Suspended"))), obj):
		return words.Fine
	default:
		return words.Waiting
	}
}

func notebook() kinds.Rules {
	return words.Graded(kinds.Rules{
		// A notebook is one pod, unless it was stopped.
		Replicas: func(obj kinds.Object) (int32, *words.Needed, error) {
			req, err := words.Requirements(obj.GetNamespace(), rules.Object(obj.Object, "spec", "template", "spec"))
			if stopped(obj) {
				return 0, req, err
			}
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

// stopped says whether the notebook was stopped in its dashboard, which notes
// down when.
func stopped(obj kinds.Object) bool { return obj.GetAnnotations()["kubeflow-resource-stopped"] != "" }

// notebookState shows the container that is furthest from running.
func notebookState(status map[string]any, r rules.Reports) {
	delete(status, "containerState")
	for _, state := range []string{"terminated", "waiting", "running"} {
		for _, p := range r.Parts {
			if s := rules.Object(p.Status, "containerState"); rules.Object(s, state) != nil {
				status["containerState"] = s
				return
			}
		}
	}
}
