package customizations_test

import "testing"

// TestSizesOfKubeflow: the roles of jobs over MPI are named as they are written.
func TestSizesOfKubeflow(t *testing.T) {
	checkSizes(t, map[string]size{
		"roles over MPI, without replicas and without pods": {
			kind: "kubeflow.org/v2beta1 MPIJob", object: `{spec: {mpiReplicaSpecs: {Launcher: {template: {}}, Worker: {template: {}}, Other: {replicas: 2}}}}`,
			parts: []string{"Launcher 1", "Worker 0"},
		},
		"other roles in lower case": {
			kind: "kubeflow.org/v1 PyTorchJob", object: `{spec: {pytorchReplicaSpecs: {Master: {template: {}}, Worker: {replicas: 3, template: {}}}}}`,
			parts: []string{"master 1", "worker 3"},
		},
		"a notebook is one pod, stopped or not": {
			kind: "kubeflow.org/v1 Notebook", object: `{metadata: {annotations: {kubeflow-resource-stopped: now}}, spec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}}}`,
			replicas: `1 of resourceRequest: cpu: "1"`,
		},
	})
}

// TestTrainingStatuses: the last condition of a job is what it is shown as.
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
	checkSums(t, map[string]sum{
		"it runs while it has in one cluster only": {
			kind: pytorch, statuses: []string{list(created, runs), list(created, ran, succeeded)}, want: list(created, runs),
		},
		"it has not run yet": {
			kind: pytorch, statuses: []string{list(created), list(created)}, want: list(created),
		},
		"it has failed once it has anywhere": {
			kind: pytorch, statuses: []string{list(created, runs), list(created, ran, failed)},
			want: list(created, ran, `{type: Failed, status: "True", reason: PyTorchJobFailed, message: "PyTorchJob failed in clusters: m2: broken", `+end5),
		},
		"it has succeeded once it has everywhere": {
			kind: pytorch, statuses: []string{list(created, ran, succeeded), list(created, ran, succeeded)},
			want: list(created, ran, `{type: Succeeded, status: "True", reason: PyTorchJobSucceeded, message: PyTorchJob succeeded in all clusters, `+end4),
		},
		"that of TensorFlow by another reason": {
			kind: "kubeflow.org/v1 TFJob", statuses: []string{list(succeeded), list(succeeded)},
			want: list(`{type: Succeeded, status: "True", reason: Completed, message: TFJob completed, ` + end4),
		},
		"others fail by their own names": {
			kind: "kubeflow.org/v1 XGBoostJob", statuses: []string{list(failed), list(created)},
			want: list(created, `{type: Failed, status: "True", reason: XGBoostJobFailed, message: "XGBoostJob failed in clusters: m1: broken", `+end5),
		},
		"it is held where it has run and runs nowhere": {
			kind: pytorch, statuses: []string{list(ran, suspended), list(ran, suspended)},
			want: list(`{type: Suspended, status: "True", reason: H, message: "m1: held; m2: held", lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}`),
		},
		"the only cluster is told as it is, in this order": {
			kind: pytorch, statuses: []string{list(failed, suspended)}, want: list(suspended, failed),
		},
		"it was created when it was first started": {
			kind: pytorch, statuses: []string{
				`{startTime: "2026-01-02T00:00:00Z", conditions: [` + created + `]}`, `{startTime: "2026-01-01T12:00:00Z", conditions: [` + created + `]}`,
			},
			want: `{startTime: "2026-01-01T12:00:00Z", conditions: [{type: Created, status: "True", reason: C, lastTransitionTime: "2026-01-01T12:00:00Z", lastUpdateTime: "2026-01-01T12:00:00Z"}]}`,
		},
		"it was completed when the last has succeeded": {
			kind: pytorch, statuses: []string{
				`{completionTime: "2026-01-01T04:00:00Z", conditions: [` + succeeded + `]}`, `{completionTime: "2026-01-01T05:00:00Z", conditions: [` + succeeded + `]}`,
			},
			want: `{completionTime: "2026-01-01T05:00:00Z"}`,
		},
		"not where one has failed": {
			kind: pytorch, statuses: []string{
				`{completionTime: "2026-01-01T04:00:00Z", conditions: [` + succeeded + `]}`, `{completionTime: "2026-01-01T05:00:00Z", conditions: [` + failed + `]}`,
			},
			want: `{completionTime: null}`,
		},
		"of a job over MPI the condition of each type that was told last": {
			kind: "kubeflow.org/v2beta1 MPIJob", statuses: []string{
				list(`{type: Running, status: "True", reason: MPIJobRunning, lastUpdateTime: "2026-01-01T02:00:00Z"}`),
				list(`{type: Created, status: "True", reason: MPIJobCreated}`, `{type: Running, status: "False", reason: MPIJobEvicted, lastTransitionTime: "2026-01-01T03:00:00Z"}`),
				list(`{type: Running, status: "True", reason: MPIJobRunning, lastUpdateTime: "2026-01-01T01:00:00Z"}`),
			},
			want: list(`{type: Created, status: "True", reason: MPIJobCreated}`, `{type: Running, status: "False", reason: MPIJobEvicted, lastTransitionTime: "2026-01-01T03:00:00Z"}`),
		},
		"and it was completed when any was": {
			kind: "kubeflow.org/v2beta1 MPIJob", statuses: []string{`{completionTime: "2026-01-01T04:00:00Z"}`, `{}`}, want: `{completionTime: "2026-01-01T04:00:00Z"}`,
		},
	})
}

// TestNotebookStatuses: a notebook of several clusters runs once it does in all.
func TestNotebookStatuses(t *testing.T) {
	const notebook = "kubeflow.org/v1 Notebook"
	checkSums(t, map[string]sum{
		"it runs since the last has begun": {
			kind: notebook, statuses: []string{
				`{readyReplicas: 1, containerState: {running: {startedAt: "2026-01-01T00:00:00Z"}}}`, `{readyReplicas: 1, containerState: {running: {startedAt: "2026-01-01T01:00:00Z"}}}`,
			},
			want: `{readyReplicas: 2, containerState: {running: {startedAt: "2026-01-01T01:00:00Z"}}, conditions: [{type: Ready, status: "True", reason: Ready}]}`,
		},
		"it waits where the last that does, does": {
			kind: notebook, statuses: []string{
				`{containerState: {terminated: {exitCode: 1}}}`, `{containerState: {waiting: {reason: ImagePullBackOff}}}`, `{containerState: {running: {}}}`,
			},
			want: `{containerState: {waiting: {reason: ImagePullBackOff}}, conditions: [{type: Failed, status: "True", reason: NotebookFailed, message: "Notebook does not run in clusters: m1,m2"}]}`,
		},
		"a cluster without a state has no room": {
			kind: notebook, statuses: []string{`{containerState: {running: {}}}`, `{containerState: {}}`},
			want: `{containerState: {waiting: {reason: Unschedulable}}, conditions: [{type: Failed, status: "True", reason: NotebookFailed, message: "Notebook does not run in clusters: m2"}]}`,
		},
		"the only cluster is told as it is": {
			kind: notebook, statuses: []string{`{containerState: {waiting: {reason: ContainerCreating}}, conditions: [{type: Waiting, status: "True", message: starts}]}`},
			want: `{containerState: {waiting: {reason: ContainerCreating}}, conditions: [{type: Waiting, status: "True", message: starts}]}`,
		},
	})
}
