package batch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/batch"
)

// TestSizesOfJobs checks which components jobs have, and what each of them needs.
func TestSizesOfJobs(t *testing.T) {
	const (
		volcano = "batch.volcano.sh/v1alpha1 Job"
		flink   = "flink.apache.org/v1beta1 FlinkDeployment"
	)
	rulestest.CheckSizes(t, batch.Table(), map[string]rulestest.Size{
		"tasks of Volcano without names are numbered from 0": {
			Kind: volcano, Object: `{spec: {tasks: [{replicas: 1}, {name: w, replicas: 2}, {replicas: 3}]}}`, Parts: []string{"task-0 1", "w 2", "task-2 3"},
		},
		"a task is as large as it has to be at least, else as its replicas, else one": {
			Kind: volcano, Object: `{spec: {tasks: [{name: a, replicas: 4, minAvailable: 2}, {name: b, replicas: 3}, {name: c}]}}`, Parts: []string{"a 2", "b 3", "c 1"},
		},
		"task managers of Flink by parallelism and slots, as text": {
			Kind: flink, Object: `{spec: {job: {parallelism: "7"}, flinkConfiguration: {taskmanager.numberOfTaskSlots: "2"}}}`,
			Replicas: "5 of nothing", Parts: []string{"jobmanager 1", "taskmanager 4"},
		},
		"one slot where nothing is said of it": {
			Kind: flink, Object: `{spec: {job: {parallelism: 3}}}`, Replicas: "4 of nothing", Parts: []string{"jobmanager 1", "taskmanager 3"},
		},
		"one task manager where there are no slots": {
			Kind: flink, Object: `{spec: {job: {parallelism: 3}, flinkConfiguration: {taskmanager.numberOfTaskSlots: "0"}}}`,
			Replicas: "2 of nothing", Parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one where their number is none": {
			Kind: flink, Object: `{spec: {job: {parallelism: 3}, flinkConfiguration: {taskmanager.numberOfTaskSlots: many}}}`,
			Replicas: "2 of nothing", Parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one where there is no parallelism": {
			Kind: flink, Object: `{spec: {job: {}, flinkConfiguration: {taskmanager.numberOfTaskSlots: 2}}}`,
			Replicas: "2 of nothing", Parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one for a session": {
			Kind: flink, Object: `{spec: {jobManager: {replicas: 2}}}`, Replicas: "3 of nothing", Parts: []string{"jobmanager 2", "taskmanager 1"},
		},
		"as many as are asked for": {
			Kind: flink, Object: `{spec: {taskManager: {replicas: 6}, job: {parallelism: 1}}}`, Replicas: "7 of nothing", Parts: []string{"jobmanager 1", "taskmanager 6"},
		},
		"the priority class of Flink's pods": {
			Kind: flink, Object: `{spec: {podTemplate: {spec: {priorityClassName: high}}, job: {parallelism: 1}}}`,
			Replicas: "2 of priorityClassName: high",
			Parts:    []string{"jobmanager 1 of priorityClassName: high", "taskmanager 1 of priorityClassName: high"},
		},
		"the priority classes of Spark's pods": {
			Kind: "sparkoperator.k8s.io/v1beta2 SparkApplication", Object: `{spec: {driver: {priorityClassName: high}, executor: {instances: 2, priorityClassName: low}}}`,
			Parts: []string{
				`driver 1 of priorityClassName: high resourceRequest: cpu: "1" memory: 1408Mi`,
				`executor 2 of priorityClassName: low resourceRequest: cpu: "1" memory: 1408Mi`,
			},
		},
	})
}

// TestNeedsOfVolcanoJobs checks that a job needs the claims that its volumes name.
func TestNeedsOfVolcanoJobs(t *testing.T) {
	deps, _, err := interpreter.New(batch.Table()).Dependencies(rulestest.Made(t, "batch.volcano.sh/v1alpha1 Job",
		`{metadata: {namespace: hpc}, spec: {volumes: [{mountPath: /in, volumeClaimName: inputs}, {mountPath: /tmp, volumeClaim: {}}], existingVolumes: [{volumeClaimName: no}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range deps {
		got = append(got, d.Kind+" "+d.Namespace+"/"+d.Name)
	}
	if diff := cmp.Diff([]string{"PersistentVolumeClaim hpc/inputs"}, got); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}

// TestVolcanoStatuses checks how the statuses of Volcano's jobs in several
// clusters are aggregated.
func TestVolcanoStatuses(t *testing.T) {
	const job = "batch.volcano.sh/v1alpha1 Job"
	const at = `lastTransitionTime: "2026-01-01T0`
	rulestest.CheckSums(t, batch.Table(), map[string]rulestest.Sum{
		"counts add up, tries too": {
			Kind: job, Statuses: []string{
				`{running: 1, minAvailable: 2, retryCount: 3, version: 4, taskStatusCount: {w: {phase: {Running: 1}}}}`,
				`{running: 2, minAvailable: 2, retryCount: 1, version: 2, taskStatusCount: {w: {phase: {Running: 2}}}}`,
			},
			Want: `{running: 3, minAvailable: 4, retryCount: 4, version: 4, taskStatusCount: {w: {phase: {Running: 3}}}}`,
		},
		"the longest that it ran, and all that it made": {
			Kind: job, Statuses: []string{
				`{runningDuration: 1h2m3s, controlledResources: {volume-emptyDir-a: volume-emptyDir-a}}`, `{runningDuration: 59m, controlledResources: {plugin-ssh: ssh}}`, `{runningDuration: long}`,
			},
			Want: `{runningDuration: 1h2m3s, controlledResources: {volume-emptyDir-a: volume-emptyDir-a, plugin-ssh: ssh}}`,
		},
		"it failed where it has in any cluster": {
			Kind: job, Statuses: []string{`{state: {phase: Running}}`, `{state: {phase: Failed, reason: X}}`, `{state: {phase: Aborted}}`},
			Want: `{state: {phase: Failed, reason: VolcanoJobFailed, message: "Job failed in clusters: m2,m3"}}`,
		},
		"it is complete where it is in all": {
			Kind: job, Statuses: []string{`{state: {phase: Completed, message: done}}`, `{state: {phase: Completed}}`}, Want: `{state: {phase: Completed, message: done}}`,
		},
		"else it is what is worst, and where": {
			Kind: job, Statuses: []string{`{state: {phase: Completed}}`, `{state: {phase: Pending}}`, `{state: {phase: Running}}`, `{state: {phase: Pending}}`},
			Want: `{state: {phase: Pending, message: "Job is Pending in clusters: m2,m4"}}`,
		},
		"phases that it went through, each when it was reached last": {
			Kind: job, Statuses: []string{
				`{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Running, ` + at + `4:00:00Z"}]}`,
				`{conditions: [{status: Pending, ` + at + `2:00:00Z"}, {status: Running, ` + at + `3:00:00Z"}]}`,
			},
			Want: `{conditions: [{status: Pending, ` + at + `2:00:00Z"}, {status: Running, ` + at + `4:00:00Z"}]}`,
		},
		"those of the first cluster in which it came to a bad end": {
			Kind: job, Statuses: []string{
				`{conditions: [{status: Pending, ` + at + `8:00:00Z"}]}`,
				`{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Aborting, ` + at + `2:00:00Z"}]}`,
				`{conditions: [{status: Failed, ` + at + `9:00:00Z"}]}`,
			},
			Want: `{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Aborting, ` + at + `2:00:00Z"}]}`,
		},
	})
}
