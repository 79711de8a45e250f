package batch_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/batch"
)

// TestSizesOfRay checks which components clusters and jobs have, and how services
// are divided.
func TestSizesOfRay(t *testing.T) {
	const service = "ray.io/v1 RayService"
	const head = `headGroupSpec: {template: {spec: {nodeSelector: {zone: a}, containers: [{name: h, resources: {requests: {cpu: 1, memory: 4Gi, nvidia.com/gpu: 1}}}]}}}`
	groups := func(fields string) string {
		return `{spec: {rayClusterConfig: {` + head + `, workerGroupSpecs: [` + fields + `]}}}`
	}
	rulestest.CheckSizes(t, batch.Table(), map[string]rulestest.Size{
		"groups without names are numbered from 1": {
			Kind: "ray.io/v1 RayCluster", Object: `{spec: {headGroupSpec: {template: {}}, workerGroupSpecs: [{replicas: 1}, {groupName: gpu, replicas: 2}, {replicas: 3}]}}`,
			Parts: []string{"ray-head 1", "worker-1 1", "gpu 2", "worker-3 3"},
		},
		"a head without a template is none": {
			Kind: "ray.io/v1 RayJob", Object: `{spec: {rayClusterSpec: {workerGroupSpecs: [{replicas: 1}]}}}`, Parts: []string{"worker-1 1"},
		},
		"a service counts its head, and has no parts": {
			Kind: service, Object: groups(`{replicas: 2, template: {spec: {containers: [{name: w, resources: {requests: {cpu: 3, memory: 2Gi, example.com/x: 1}}}]}}}, {}`),
			Replicas: `3 of nodeClaim: nodeSelector: zone: a resourceRequest: cpu: "3" memory: 4Gi nvidia.com/gpu: "1"`,
		},
		"one without a head has no replicas":    {Kind: service, Object: `{spec: {rayClusterConfig: {workerGroupSpecs: [{replicas: 2}]}}}`, Replicas: "0 of nothing"},
		"one without a cluster has none either": {Kind: service, Object: `{spec: {}}`, Replicas: "0 of nothing"},
		"one without workers stays as it is":    {Kind: service, Object: groups(``), Revise: 3, Revised: []string{}},
		"the only group gets all but the head": {
			Kind: service, Object: groups(`{replicas: 2}`), Revise: 6, Revised: []string{"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 2 -> 5"},
		},
		"several get shares, rounded, the last what is left": {
			Kind: service, Object: groups(`{replicas: 1}, {replicas: 1}, {replicas: 2}`), Revise: 11,
			Revised: []string{
				"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 1 -> 3", "spec.rayClusterConfig.workerGroupSpecs[1].replicas: 1 -> 3",
				"spec.rayClusterConfig.workerGroupSpecs[2].replicas: 2 -> 4",
			},
		},
		"which is never less than nothing": {
			Kind: service, Object: groups(`{replicas: 1}, {replicas: 1}, {replicas: 0}`), Revise: 2,
			Revised: []string{"spec.rayClusterConfig.workerGroupSpecs[1].replicas: 1 -> 0"},
		},
		"even shares where no group has a size": {
			Kind: service, Object: groups(`{replicas: 0}, {replicas: 0}, {replicas: 0}`), Revise: 6,
			Revised: []string{
				"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 0 -> 2", "spec.rayClusterConfig.workerGroupSpecs[1].replicas: 0 -> 2",
				"spec.rayClusterConfig.workerGroupSpecs[2].replicas: 0 -> 1",
			},
		},
		"nothing leaves no workers": {
			Kind: service, Object: groups(`{replicas: 2}`), Revise: 0, Revised: []string{"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 2 -> 0"},
		},
	})
}

// TestRayStatuses checks how the statuses of Ray's kinds are aggregated.
func TestRayStatuses(t *testing.T) {
	const cluster, job, service = "ray.io/v1 RayCluster", "ray.io/v1 RayJob", "ray.io/v1 RayService"
	rulestest.CheckSums(t, batch.Table(), map[string]rulestest.Sum{
		"the only cluster's head and times": {
			Kind: cluster, Statuses: []string{`{head: {podIP: 10.0.0.1}, endpoints: {dashboard: "8265"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`},
			Want: `{head: {podIP: 10.0.0.1}, endpoints: {dashboard: "8265"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`,
		},
		"of several the first that has a head, and no times": {
			Kind: cluster, Statuses: []string{`{}`, `{head: {podIP: 10.0.0.2}, endpoints: {dashboard: "1"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`, `{head: {podIP: 10.0.0.3}, endpoints: {dashboard: "2"}}`},
			Want: `{head: {podIP: 10.0.0.2}, endpoints: {dashboard: "1"}, stateTransitionTimes: null}`,
		},
		"the only cluster's dashboard": {
			Kind: job, Statuses: []string{`{jobDeploymentStatus: ValidationFailed, dashboardURL: a.b}`}, Want: `{jobDeploymentStatus: ValidationFailed, dashboardURL: a.b}`,
		},
		"a job that is not valid in a cluster, with what that says": {
			Kind: job, Statuses: []string{
				`{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED, message: done, dashboardURL: a.b}`, `{jobDeploymentStatus: ValidationFailed, reason: ValidationFailed, message: no head}`,
			},
			Want: `{jobDeploymentStatus: ValidationFailed, jobStatus: SUCCEEDED, reason: ValidationFailed, message: no head, dashboardURL: null}`,
		},
		"one that has failed goes before": {
			Kind: job, Statuses: []string{`{jobDeploymentStatus: ValidationFailed, reason: V}`, `{jobDeploymentStatus: Failed, reason: AppFailed, jobStatus: FAILED}`, `{jobDeploymentStatus: Running, jobStatus: STOPPED}`},
			Want: `{jobDeploymentStatus: Failed, jobStatus: FAILED, reason: AppFailed}`,
		},
		"one that is complete goes before what runs": {
			Kind: job, Statuses: []string{`{jobDeploymentStatus: Running, jobStatus: RUNNING}`, `{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`, `{jobDeploymentStatus: Retrying, jobStatus: PENDING}`},
			Want: `{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`,
		},
		"what has begun goes before what waits, which goes before what begins": {
			Kind: job, Statuses: []string{`{jobDeploymentStatus: Initializing}`, `{jobDeploymentStatus: Waiting}`, `{jobDeploymentStatus: Suspending}`, `{jobDeploymentStatus: Retrying}`, `{}`},
			Want: `{jobDeploymentStatus: Retrying, jobStatus: null}`,
		},
		"applications of a service do as they do where they do worst": {
			Kind: service, Statuses: []string{
				`{pendingServiceStatus: {}}`,
				`{activeServiceStatus: {rayClusterName: a, applicationStatuses: {web: {status: RUNNING}, api: {status: DEPLOYING}}}, pendingServiceStatus: {rayClusterName: p}}`,
				`{activeServiceStatus: {rayClusterName: b, applicationStatuses: {web: {status: UNHEALTHY, message: slow}, api: {status: NOT_STARTED}, new: {status: RUNNING}}}}`,
			},
			Want: `{activeServiceStatus: {rayClusterName: a, applicationStatuses: {web: {status: UNHEALTHY, message: slow}, api: {status: DEPLOYING}, new: {status: RUNNING}}}, pendingServiceStatus: {}}`,
		},
	})
}
