package batch_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/batch"
)

// TestSizesOfKubeflow checks that the roles of jobs over MPI keep the case of
// their names.
func TestSizesOfKubeflow(t *testing.T) {
	rulestest.CheckSizes(t, batch.Table(), map[string]rulestest.Size{
		"roles over MPI, without replicas and without pods": {
			Kind: "kubeflow.org/v2beta1 MPIJob", Object: `{spec: {mpiReplicaSpecs: {Launcher: {template: {}}, Worker: {template: {}}, Other: {replicas: 2}}}}`,
			Parts: []string{"Launcher 1", "Worker 0"},
		},
		"other roles in lower case": {
			Kind: "kubeflow.org/v1 PyTorchJob", Object: `{spec: {pytorchReplicaSpecs: {Master: {template: {}}, Worker: {replicas: 3, template: {}}}}}`,
			Parts: []string{"master 1", "worker 3"},
		},
		"a notebook is one pod, stopped or not": {
			Kind: "kubeflow.org/v1 Notebook", Object: `{metadata: {annotations: {kubeflow-resource-stopped: now}}, spec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}}}`,
			Replicas: `1 of resourceRequest: cpu: "1"`,
		},
	})
}

// TestTrainingStatuses checks that the last condition of a job shows its state.
func TestTrainingStatuses(t *testing.T) {
	const (
		created   = `{type: Created, status: "True", reason: C, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
		runs      = `{type: Running, status: "True", reason: R, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
		ran       = `{type: Running, status: "False", reason: R, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
		failed    = `{type: Failed, status: "True", reason: F, message: broken, lastTransitionTime: "2026-01-01T05:00:00Z", lastUpdateTime: "2026-01-01T05:00:00Z"}`
		succeeded = `{type: Succeeded, status: "True", reason: S, lastTransitionTime: "2026-01-01T04:00:00Z", lastUpdateTime: "2026-01-01T04:00:00Z"}`
		suspended = `{type: Suspended, status: "True", reason: H, message: held, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`
		pytorch   = "kubeflow.org/v1 PyTorchJob"
		end5      = `lastTransitionTime: "2026-01-01T05:00:00Z", lastUpdateTime: "2026-01-01T05:00:00Z"}`
		end4      = `lastTransitionTime: "2026-01-01T04:00:00Z", lastUpdateTime: "2026-01-01T04:00:00Z"}`
	)
	list := func(conditions ...string) string {
		out := "{conditions: ["
		for i, c := range conditions {
			if i > 0 {
				out += ", "
			}
			out += c
		}
		return out + "]}"
	}
	rulestest.CheckSums(t, batch.Table(), map[string]rulestest.Sum{
		"it runs while it has in one cluster only": {
			Kind: pytorch, Statuses: []string{list(created, runs), list(created, ran, succeeded)}, Want: list(created, runs),
		},
		"it has not run yet": {
			Kind: pytorch, Statuses: []string{list(created), list(created)}, Want: list(created),
		},
		"it has failed once it has anywhere": {
			Kind: pytorch, Statuses: []string{list(created, runs), list(created, ran, failed)},
			Want: list(created, ran, `{type: Failed, status: "True", reason: PyTorchJobFailed, message: "PyTorchJob failed in clusters: m2: broken", `+end5),
		},
		"it has succeeded once it has everywhere": {
			Kind: pytorch, Statuses: []string{list(created, ran, succeeded), list(created, ran, succeeded)},
			Want: list(created, ran, `{type: Succeeded, status: "True", reason: PyTorchJobSucceeded, message: PyTorchJob succeeded in all clusters, `+end4),
		},
		"that of TensorFlow by another reason": {
			Kind: "kubeflow.org/v1 TFJob", Statuses: []string{list(succeeded), list(succeeded)},
			Want: list(`{type: Succeeded, status: "True", reason: Completed, message: TFJob completed, ` + end4),
		},
		"others fail by their own names": {
			Kind: "kubeflow.org/v1 XGBoostJob", Statuses: []string{list(failed), list(created)},
			Want: list(created, `{type: Failed, status: "True", reason: XGBoostJobFailed, message: "XGBoostJob failed in clusters: m1: broken", `+end5),
		},
		"it is held where it has run and runs nowhere": {
			Kind: pytorch, Statuses: []string{list(ran, suspended), list(ran, suspended)},
			Want: list(`{type: Suspended, status: "True", reason: H, message: "m1: held; m2: held", lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`),
		},
		"the only cluster is told as it is, in this order": {
			Kind: pytorch, Statuses: []string{list(failed, suspended)}, Want: list(suspended, failed),
		},
		"it was created when it was first started": {
			Kind: pytorch, Statuses: []string{
				`{startTime: "2026-01-02T00:00:00Z", conditions: [` + created + `]}`, `{startTime: "2026-01-01T12:00:00Z", conditions: [` + created + `]}`,
			},
			Want: `{startTime: "2026-01-01T12:00:00Z", conditions: [{type: Created, status: "True", reason: C, lastTransitionTime: "2026-01-01T12:00:00Z", lastUpdateTime: "2026-01-01T12:00:00Z"}]}`,
		},
		"it was completed when the last has succeeded": {
			Kind: pytorch, Statuses: []string{
				`{completionTime: "2026-01-01T04:00:00Z", conditions: [` + succeeded + `]}`, `{completionTime: "2026-01-01T05:00:00Z", conditions: [` + succeeded + `]}`,
			},
			Want: `{completionTime: "2026-01-01T05:00:00Z"}`,
		},
		"not where one has failed": {
			Kind: pytorch, Statuses: []string{
				`{completionTime: "2026-01-01T04:00:00Z", conditions: [` + succeeded + `]}`, `{completionTime: "2026-01-01T05:00:00Z", conditions: [` + failed + `]}`,
			},
			Want: `{completionTime: null}`,
		},
		"of a job over MPI the condition of each type that was told last": {
			Kind: "kubeflow.org/v2beta1 MPIJob", Statuses: []string{
				list(`{type: Running, status: "True", reason: MPIJobRunning, lastUpdateTime: "2026-01-01T02:00:00Z"}`),
				list(`{type: Created, status: "True", reason: MPIJobCreated}`, `{type: Running, status: "False", reason: MPIJobEvicted, lastTransitionTime: "2026-01-01T03:00:00Z"}`),
				list(`{type: Running, status: "True", reason: MPIJobRunning, lastUpdateTime: "2026-01-01T01:00:00Z"}`),
			},
			Want: list(`{type: Created, status: "True", reason: MPIJobCreated}`, `{type: Running, status: "False", reason: MPIJobEvicted, lastTransitionTime: "2026-01-01T03:00:00Z"}`),
		},
		"and it was completed when any was": {
			Kind: "kubeflow.org/v2beta1 MPIJob", Statuses: []string{`{completionTime: "2026-01-01T04:00:00Z"}`, `{}`}, Want: `{completionTime: "2026-01-01T04:00:00Z"}`,
		},
	})
}

// TestNotebookStatuses checks that a notebook of several clusters runs once it
// runs in all of them.
func TestNotebookStatuses(t *testing.T) {
	const notebook = "kubeflow.org/v1 Notebook"
	rulestest.CheckSums(t, batch.Table(), map[string]rulestest.Sum{
		"it runs since the last has begun": {
			Kind: notebook, Statuses: []string{
				`{readyReplicas: 1, containerState: {running: {startedAt: "2026-01-01T00:00:00Z"}}}`, `{readyReplicas: 1, containerState: {running: {startedAt: "2026-01-01T01:00:00Z"}}}`,
			},
			Want: `{readyReplicas: 2, containerState: {running: {startedAt: "2026-01-01T01:00:00Z"}}, conditions: [{type: Ready, status: "True", reason: Ready}]}`,
		},
		"it waits where the last that does, does": {
			Kind: notebook, Statuses: []string{
				`{containerState: {terminated: {exitCode: 1}}}`, `{containerState: {waiting: {reason: ImagePullBackOff}}}`, `{containerState: {running: {}}}`,
			},
			Want: `{containerState: {waiting: {reason: ImagePullBackOff}}, conditions: [{type: Failed, status: "True", reason: NotebookFailed, message: "Notebook does not run in clusters: m1,m2"}]}`,
		},
		"a cluster without a state has no room": {
			Kind: notebook, Statuses: []string{`{containerState: {running: {}}}`, `{containerState: {}}`},
			Want: `{containerState: {waiting: {reason: Unschedulable}}, conditions: [{type: Failed, status: "True", reason: NotebookFailed, message: "Notebook does not run in clusters: m2"}]}`,
		},
		"the only cluster is told as it is": {
			Kind: notebook, Statuses: []string{`{containerState: {waiting: {reason: ContainerCreating}}, conditions: [{type: Waiting, status: "True", message: starts}]}`},
			Want: `{containerState: {waiting: {reason: ContainerCreating}}, conditions: [{type: Waiting, status: "True", message: starts}]}`,
		},
	})
}
