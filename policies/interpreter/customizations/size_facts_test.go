package customizations_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// size is a row about what an object asks for: "2 of cpu 1", with "class high" and
// more behind; its parts, if it has several; and what changes where it is to ask for
// another number of replicas.
type size struct {
	kind, object string
	replicas     string
	parts        []string
	revise       int32
	revised      []string
}

// asked writes down what a replica needs.
func asked(t testing.TB, req any) string {
	t.Helper()
	data, err := yaml.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(data))
	if text == "null" {
		return "nothing"
	}
	return strings.Join(strings.Fields(text), " ")
}

func checkSizes(t *testing.T, rows map[string]size) {
	t.Helper()
	know := interpreter.New(customizations.Table())
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			obj := made(t, row.kind, row.object)
			got := size{kind: row.kind, object: row.object, revise: row.revise}
			if n, req, known, err := know.Replicas(obj); err != nil {
				t.Fatal(err)
			} else if known && row.replicas != "" {
				got.replicas = fmt.Sprintf("%d of %s", n, asked(t, req))
			}
			parts, known, err := know.Components(obj)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range parts {
				text := fmt.Sprintf("%s %d", p.Name, p.Replicas)
				if p.ReplicaRequirements != nil {
					text += " of " + asked(t, p.ReplicaRequirements)
				}
				got.parts = append(got.parts, text)
			}
			if known && len(parts) == 0 {
				got.parts = []string{}
			}
			if row.revised != nil {
				revised, known, err := know.Revise(obj, row.revise)
				if err != nil || !known {
					t.Fatalf("revised = %t, %v", known, err)
				}
				got.revised = append([]string{}, changes("", obj.Object, revised.Object)...)
			}
			if diff := cmp.Diff(row, got, cmp.AllowUnexported(size{})); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatGoesEverywhere: what has no number of replicas needs nothing either, so that
// it goes to every cluster that is chosen, whatever the division.
func TestWhatGoesEverywhere(t *testing.T) {
	const broadcast, pods = "apps.kruise.io/v1alpha1 BroadcastJob", `template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
	checkSizes(t, map[string]size{
		"a SidecarSet": {
			kind: "apps.kruise.io/v1alpha1 SidecarSet", object: `{spec: {namespace: shop, containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`,
			replicas: "0 of nothing",
		},
		"a BroadcastJob with a limit": {
			kind: broadcast, object: `{spec: {parallelism: 4, ` + pods + `}}`,
			replicas: `4 of resourceRequest: cpu: "1"`, revise: 2, revised: []string{"spec.parallelism: 4 -> 2"},
		},
		"a BroadcastJob without a limit": {
			kind: broadcast, object: `{spec: {` + pods + `}}`, replicas: "0 of nothing", revise: 2, revised: []string{},
		},
		"a BroadcastJob limited to a share of the nodes": {
			kind: broadcast, object: `{spec: {parallelism: 10%, ` + pods + `}}`, replicas: "0 of nothing", revise: 2, revised: []string{},
		},
	})
}

// TestSizesOfJobs: what parts jobs have, and what these need.
func TestSizesOfJobs(t *testing.T) {
	const (
		volcano = "batch.volcano.sh/v1alpha1 Job"
		flink   = "flink.apache.org/v1beta1 FlinkDeployment"
	)
	checkSizes(t, map[string]size{
		"tasks of Volcano without names are numbered from 0": {
			kind: volcano, object: `{spec: {tasks: [{replicas: 1}, {name: w, replicas: 2}, {replicas: 3}]}}`, parts: []string{"task-0 1", "w 2", "task-2 3"},
		},
		"a task is as large as it has to be at least, else as its replicas, else one": {
			kind: volcano, object: `{spec: {tasks: [{name: a, replicas: 4, minAvailable: 2}, {name: b, replicas: 3}, {name: c}]}}`, parts: []string{"a 2", "b 3", "c 1"},
		},
		"task managers of Flink by parallelism and slots, as text": {
			kind: flink, object: `{spec: {job: {parallelism: "7"}, flinkConfiguration: {taskmanager.numberOfTaskSlots: "2"}}}`,
			replicas: "5 of nothing", parts: []string{"jobmanager 1", "taskmanager 4"},
		},
		"one slot where nothing is said of it": {
			kind: flink, object: `{spec: {job: {parallelism: 3}}}`, replicas: "4 of nothing", parts: []string{"jobmanager 1", "taskmanager 3"},
		},
		"one task manager where there are no slots": {
			kind: flink, object: `{spec: {job: {parallelism: 3}, flinkConfiguration: {taskmanager.numberOfTaskSlots: "0"}}}`,
			replicas: "2 of nothing", parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one where their number is none": {
			kind: flink, object: `{spec: {job: {parallelism: 3}, flinkConfiguration: {taskmanager.numberOfTaskSlots: many}}}`,
			replicas: "2 of nothing", parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one where there is no parallelism": {
			kind: flink, object: `{spec: {job: {}, flinkConfiguration: {taskmanager.numberOfTaskSlots: 2}}}`,
			replicas: "2 of nothing", parts: []string{"jobmanager 1", "taskmanager 1"},
		},
		"one for a session": {
			kind: flink, object: `{spec: {jobManager: {replicas: 2}}}`, replicas: "3 of nothing", parts: []string{"jobmanager 2", "taskmanager 1"},
		},
		"as many as are asked for": {
			kind: flink, object: `{spec: {taskManager: {replicas: 6}, job: {parallelism: 1}}}`, replicas: "7 of nothing", parts: []string{"jobmanager 1", "taskmanager 6"},
		},
		"the priority class of Flink's pods": {
			kind: flink, object: `{spec: {podTemplate: {spec: {priorityClassName: high}}, job: {parallelism: 1}}}`,
			replicas: "2 of priorityClassName: high",
			parts:    []string{"jobmanager 1 of priorityClassName: high", "taskmanager 1 of priorityClassName: high"},
		},
		"the priority classes of Spark's pods": {
			kind: "sparkoperator.k8s.io/v1beta2 SparkApplication", object: `{spec: {driver: {priorityClassName: high}, executor: {instances: 2, priorityClassName: low}}}`,
			parts: []string{
				`driver 1 of priorityClassName: high resourceRequest: cpu: "1" memory: 1408Mi`,
				`executor 2 of priorityClassName: low resourceRequest: cpu: "1" memory: 1408Mi`,
			},
		},
	})
}

// TestNeedsOfVolcanoJobs: the claims of a job are those that its volumes name.
func TestNeedsOfVolcanoJobs(t *testing.T) {
	deps, _, err := interpreter.New(customizations.Table()).Dependencies(made(t, "batch.volcano.sh/v1alpha1 Job",
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

// TestVolcanoStatuses: what jobs of Volcano come to in several clusters.
func TestVolcanoStatuses(t *testing.T) {
	const job = "batch.volcano.sh/v1alpha1 Job"
	const at = `lastTransitionTime: "2026-01-01T0`
	checkSums(t, map[string]sum{
		"counts add up, tries too": {
			kind: job, statuses: []string{
				`{running: 1, minAvailable: 2, retryCount: 3, version: 4, taskStatusCount: {w: {phase: {Running: 1}}}}`,
				`{running: 2, minAvailable: 2, retryCount: 1, version: 2, taskStatusCount: {w: {phase: {Running: 2}}}}`,
			},
			want: `{running: 3, minAvailable: 4, retryCount: 4, version: 4, taskStatusCount: {w: {phase: {Running: 3}}}}`,
		},
		"the longest that it ran, and all that it made": {
			kind: job, statuses: []string{
				`{runningDuration: 1h2m3s, controlledResources: {volume-emptyDir-a: volume-emptyDir-a}}`, `{runningDuration: 59m, controlledResources: {plugin-ssh: ssh}}`, `{runningDuration: long}`,
			},
			want: `{runningDuration: 1h2m3s, controlledResources: {volume-emptyDir-a: volume-emptyDir-a, plugin-ssh: ssh}}`,
		},
		"it failed where it has in any cluster": {
			kind: job, statuses: []string{`{state: {phase: Running}}`, `{state: {phase: Failed, reason: X}}`, `{state: {phase: Aborted}}`},
			want: `{state: {phase: Failed, reason: VolcanoJobFailed, message: "Job failed in clusters: m2,m3"}}`,
		},
		"it is complete where it is in all": {
			kind: job, statuses: []string{`{state: {phase: Completed, message: done}}`, `{state: {phase: Completed}}`}, want: `{state: {phase: Completed, message: done}}`,
		},
		"else it is what is worst, and where": {
			kind: job, statuses: []string{`{state: {phase: Completed}}`, `{state: {phase: Pending}}`, `{state: {phase: Running}}`, `{state: {phase: Pending}}`},
			want: `{state: {phase: Pending, message: "Job is Pending in clusters: m2,m4"}}`,
		},
		"phases that it went through, each when it was reached last": {
			kind: job, statuses: []string{
				`{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Running, ` + at + `4:00:00Z"}]}`,
				`{conditions: [{status: Pending, ` + at + `2:00:00Z"}, {status: Running, ` + at + `3:00:00Z"}]}`,
			},
			want: `{conditions: [{status: Pending, ` + at + `2:00:00Z"}, {status: Running, ` + at + `4:00:00Z"}]}`,
		},
		"those of the first cluster in which it came to a bad end": {
			kind: job, statuses: []string{
				`{conditions: [{status: Pending, ` + at + `8:00:00Z"}]}`,
				`{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Aborting, ` + at + `2:00:00Z"}]}`,
				`{conditions: [{status: Failed, ` + at + `9:00:00Z"}]}`,
			},
			want: `{conditions: [{status: Pending, ` + at + `1:00:00Z"}, {status: Aborting, ` + at + `2:00:00Z"}]}`,
		},
	})
}
