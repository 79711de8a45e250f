package customizations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// TestSizesOfRay: parts of clusters and jobs, and services that are divided.
func TestSizesOfRay(t *testing.T) {
	const service = "ray.io/v1 RayService"
	const head = `headGroupSpec: {template: {spec: {nodeSelector: {zone: a}, containers: [{name: h, resources: {requests: {cpu: 1, memory: 4Gi, nvidia.com/gpu: 1}}}]}}}`
	groups := func(fields string) string {
		return `{spec: {rayClusterConfig: {` + head + `, workerGroupSpecs: [` + fields + `]}}}`
	}
	checkSizes(t, map[string]size{
		"groups without names are numbered from 1": {
			kind: "ray.io/v1 RayCluster", object: `{spec: {headGroupSpec: {template: {}}, workerGroupSpecs: [{replicas: 1}, {groupName: gpu, replicas: 2}, {replicas: 3}]}}`,
			parts: []string{"ray-head 1", "worker-1 1", "gpu 2", "worker-3 3"},
		},
		"a head without a template is none": {
			kind: "ray.io/v1 RayJob", object: `{spec: {rayClusterSpec: {workerGroupSpecs: [{replicas: 1}]}}}`, parts: []string{"worker-1 1"},
		},
		"a service counts its head, and has no parts": {
			kind: service, object: groups(`{replicas: 2, template: {spec: {containers: [{name: w, resources: {requests: {cpu: 3, memory: 2Gi, example.com/x: 1}}}]}}}, {}`),
			replicas: `3 of nodeClaim: nodeSelector: zone: a resourceRequest: cpu: "3" memory: 4Gi nvidia.com/gpu: "1"`,
		},
		"one without a head has no replicas":    {kind: service, object: `{spec: {rayClusterConfig: {workerGroupSpecs: [{replicas: 2}]}}}`, replicas: "0 of nothing"},
		"one without a cluster has none either": {kind: service, object: `{spec: {}}`, replicas: "0 of nothing"},
		"one without workers stays as it is":    {kind: service, object: groups(``), revise: 3, revised: []string{}},
		"the only group gets all but the head": {
			kind: service, object: groups(`{replicas: 2}`), revise: 6, revised: []string{"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 2 -> 5"},
		},
		"several get shares, rounded, the last what is left": {
			kind: service, object: groups(`{replicas: 1}, {replicas: 1}, {replicas: 2}`), revise: 11,
			revised: []string{
				"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 1 -> 3", "spec.rayClusterConfig.workerGroupSpecs[1].replicas: 1 -> 3",
				"spec.rayClusterConfig.workerGroupSpecs[2].replicas: 2 -> 4",
			},
		},
		"which is never less than nothing": {
			kind: service, object: groups(`{replicas: 1}, {replicas: 1}, {replicas: 0}`), revise: 2,
			revised: []string{"spec.rayClusterConfig.workerGroupSpecs[1].replicas: 1 -> 0"},
		},
		"even shares where no group has a size": {
			kind: service, object: groups(`{replicas: 0}, {replicas: 0}, {replicas: 0}`), revise: 6,
			revised: []string{
				"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 0 -> 2", "spec.rayClusterConfig.workerGroupSpecs[1].replicas: 0 -> 2",
				"spec.rayClusterConfig.workerGroupSpecs[2].replicas: 0 -> 1",
			},
		},
		"nothing leaves no workers": {
			kind: service, object: groups(`{replicas: 2}`), revise: 0, revised: []string{"spec.rayClusterConfig.workerGroupSpecs[0].replicas: 2 -> 0"},
		},
	})
}

// TestRayStatuses: what Ray's kinds come to.
func TestRayStatuses(t *testing.T) {
	const cluster, job, service = "ray.io/v1 RayCluster", "ray.io/v1 RayJob", "ray.io/v1 RayService"
	checkSums(t, map[string]sum{
		"the only cluster's head and times": {
			kind: cluster, statuses: []string{`{head: {podIP: 10.0.0.1}, endpoints: {dashboard: "8265"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`},
			want: `{head: {podIP: 10.0.0.1}, endpoints: {dashboard: "8265"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`,
		},
		"of several the first that has a head, and no times": {
			kind: cluster, statuses: []string{`{}`, `{head: {podIP: 10.0.0.2}, endpoints: {dashboard: "1"}, stateTransitionTimes: {ready: "2026-01-01T00:00:00Z"}}`, `{head: {podIP: 10.0.0.3}, endpoints: {dashboard: "2"}}`},
			want: `{head: {podIP: 10.0.0.2}, endpoints: {dashboard: "1"}, stateTransitionTimes: null}`,
		},
		"the only cluster's dashboard": {
			kind: job, statuses: []string{`{jobDeploymentStatus: ValidationFailed, dashboardURL: a.b}`}, want: `{jobDeploymentStatus: ValidationFailed, dashboardURL: a.b}`,
		},
		"a job that is not valid in a cluster, with what that says": {
			kind: job, statuses: []string{
				`{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED, message: done, dashboardURL: a.b}`, `{jobDeploymentStatus: ValidationFailed, reason: ValidationFailed, message: no head}`,
			},
			want: `{jobDeploymentStatus: ValidationFailed, jobStatus: SUCCEEDED, reason: ValidationFailed, message: no head, dashboardURL: null}`,
		},
		"one that has failed goes before": {
			kind: job, statuses: []string{`{jobDeploymentStatus: ValidationFailed, reason: V}`, `{jobDeploymentStatus: Failed, reason: AppFailed, jobStatus: FAILED}`, `{jobDeploymentStatus: Running, jobStatus: STOPPED}`},
			want: `{jobDeploymentStatus: Failed, jobStatus: FAILED, reason: AppFailed}`,
		},
		"one that is complete goes before what runs": {
			kind: job, statuses: []string{`{jobDeploymentStatus: Running, jobStatus: RUNNING}`, `{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`, `{jobDeploymentStatus: Retrying, jobStatus: PENDING}`},
			want: `{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`,
		},
		"what has begun goes before what waits, which goes before what begins": {
			kind: job, statuses: []string{`{jobDeploymentStatus: Initializing}`, `{jobDeploymentStatus: Waiting}`, `{jobDeploymentStatus: Suspending}`, `{jobDeploymentStatus: Retrying}`, `{}`},
			want: `{jobDeploymentStatus: Retrying, jobStatus: null}`,
		},
		"applications of a service do as they do where they do worst": {
			kind: service, statuses: []string{
				`{pendingServiceStatus: {}}`,
				`{activeServiceStatus: {rayClusterName: a, applicationStatuses: {web: {status: RUNNING}, api: {status: DEPLOYING}}}, pendingServiceStatus: {rayClusterName: p}}`,
				`{activeServiceStatus: {rayClusterName: b, applicationStatuses: {web: {status: UNHEALTHY, message: slow}, api: {status: NOT_STARTED}, new: {status: RUNNING}}}}`,
			},
			want: `{activeServiceStatus: {rayClusterName: a, applicationStatuses: {web: {status: UNHEALTHY, message: slow}, api: {status: DEPLOYING}, new: {status: RUNNING}}}, pendingServiceStatus: {}}`,
		},
	})
}

// TestFluxStatuses: what Flux in members says beyond conditions.
func TestFluxStatuses(t *testing.T) {
	checkSums(t, map[string]sum{
		"a release says what was released": {
			kind: "helm.toolkit.fluxcd.io/v2beta1 HelmRelease", statuses: []string{
				`{helmChart: flux-system/web, lastReleaseRevision: 3, lastAttemptedValuesChecksum: abc}`, `{helmChart: flux-system/web, lastReleaseRevision: 3}`,
			},
			want: `{helmChart: flux-system/web, lastReleaseRevision: 3, lastAttemptedValuesChecksum: abc}`,
		},
		"but not where clusters differ": {
			kind: "helm.toolkit.fluxcd.io/v2beta1 HelmRelease", statuses: []string{`{lastReleaseRevision: 3}`, `{lastReleaseRevision: 4}`}, want: `{lastReleaseRevision: null}`,
		},
		"a chart says what it was made of": {
			kind: "source.toolkit.fluxcd.io/v1 HelmChart", statuses: []string{`{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`, `{observedChartName: web}`},
			want: `{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`,
		},
	})
}

// TestWhatSourcesReport: beside conditions and revisions, what a source was made with.
func TestWhatSourcesReport(t *testing.T) {
	for kind, status := range map[string]string{
		"source.toolkit.fluxcd.io/v1 GitRepository": `{observedIgnore: "*.md", observedRecurseSubmodules: true}`,
		"source.toolkit.fluxcd.io/v1 Bucket":        `{observedIgnore: "*.md"}`,
		"source.toolkit.fluxcd.io/v1 OCIRepository": `{observedIgnore: "*.md", observedLayerSelector: {operation: copy}}`,
		"source.toolkit.fluxcd.io/v1 HelmChart":     `{observedChartName: web, observedSourceArtifactRevision: "sha256:a"}`,
	} {
		t.Run(kind, func(t *testing.T) {
			obj := made(t, kind, `{status: `+status+`}`)
			reported, err := interpreter.New(customizations.Table()).ReflectStatus(obj)
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]any{}, fromYAML(t, status)
			for field, v := range fromYAML(t, string(reported.Raw)) {
				if want[field] != nil {
					got[field] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}
