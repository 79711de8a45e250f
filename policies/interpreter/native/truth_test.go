package native_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// rolled returns the template with its aggregated status, given its copies in the
// members m1, m2, …; "-" is a member that has not reported.
func rolled(t testing.TB, template string, copies []string) *unstructured.Unstructured {
	t.Helper()
	know, out := interpreter.Native(), object(t, template)
	var items []workv1alpha2.AggregatedStatusItem
	for i, text := range copies {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i))}
		if text != "-" {
			copied := object(t, text)
			copied.SetAPIVersion(out.GetAPIVersion())
			copied.SetKind(out.GetKind())
			reflected, err := know.ReflectStatus(copied)
			if err != nil {
				t.Fatal(err)
			}
			item.Status = reflected
		}
		items = append(items, item)
	}
	total, _, err := know.AggregateStatus(out, items)
	if err != nil {
		t.Fatal(err)
	}
	out.Object["status"] = total
	return out
}

// verdict is what two tools make of a template.
type verdict struct{ Kstatus, Rollout string }

func judge(t *testing.T, template *unstructured.Unstructured) verdict {
	t.Helper()
	result, err := status.Compute(template)
	if err != nil {
		t.Fatal(err)
	}
	out := verdict{Kstatus: result.Status.String() + ": " + result.Message}
	viewer, err := polymorphichelpers.StatusViewerFor(template.GroupVersionKind().GroupKind())
	if err != nil {
		return out // kubectl rollout does not know the kind
	}
	message, done, err := viewer.Status(template, 0)
	switch {
	case err != nil:
		out.Rollout = "error: " + err.Error()
	case done:
		out.Rollout = "done: " + strings.TrimSpace(message)
	default:
		out.Rollout = "waits: " + strings.TrimSpace(message)
	}
	return out
}

const templateGeneration = `annotations: {resourcetemplate.karmada.io/generation: "2"}`

// web is a Deployment that runs in all members, except for what a case changes.
const (
	webTemplate = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 2}, spec: {replicas: 4, progressDeadlineSeconds: 600}, status: {observedGeneration: 1}}`
	webDone     = `{metadata: {generation: 3, ` + templateGeneration + `}, status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [
  {type: Available, status: "True", reason: MinimumReplicasAvailable, message: fine, lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	webRolls = `{metadata: {generation: 3, ` + templateGeneration + `}, status: {observedGeneration: 3, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1, conditions: [
  {type: Available, status: "False", reason: MinimumReplicasUnavailable, lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Progressing, status: "True", reason: ReplicaSetUpdated, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	webStuck = `{metadata: {generation: 3, ` + templateGeneration + `}, status: {observedGeneration: 3, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1, conditions: [
  {type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"},
  {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it takes too long, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	dbTemplate  = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, generation: 2}, spec: {replicas: 2, updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1, currentRevision: db-old, updateRevision: db-old}}`
	dbDone      = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, currentReplicas: 1, currentRevision: db-new, updateRevision: db-new}}`
	dbRolls     = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 1, currentReplicas: 1, currentRevision: db-old, updateRevision: db-new}}`
	logTemplate = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log, generation: 2}, spec: {updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1}}`
	logDone     = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3}}`
	logRolls    = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberReady: 3, numberAvailable: 3}}`
	rsTemplate  = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rs, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1}}`
	rcTemplate  = `{apiVersion: v1, kind: ReplicationController, metadata: {name: rc, generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 1}}`
	rsDone      = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1, readyReplicas: 1, availableReplicas: 1}}`
)

// idleTemplate returns a template that had two replicas in each of two clusters
// before.
func idleTemplate(kind, spec string) string {
	return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {name: w, generation: 2}, spec: {` + spec + `}, status: {observedGeneration: 1,
  replicas: 4, updatedReplicas: 4, readyReplicas: 4, availableReplicas: 4, currentReplicas: 4, currentRevision: a, updateRevision: b,
  currentNumberScheduled: 4, desiredNumberScheduled: 4, updatedNumberScheduled: 4, numberReady: 4, numberAvailable: 4}}`
}

// TestTruth checks that kstatus and kubectl see a template as its members are.
func TestTruth(t *testing.T) {
	cases := map[string]struct {
		template string
		copies   []string
		want     verdict
	}{
		"a deployment that runs everywhere": {
			webTemplate, []string{webDone, webDone},
			verdict{"Current: Deployment is available. Replicas: 4", `done: deployment "web" successfully rolled out`},
		},
		"one that a cluster has not reported on": {
			webTemplate, []string{webDone, "-"},
			verdict{"InProgress: Deployment generation is 2, but latest observed generation is 1", `waits: Waiting for deployment spec update to be observed...`},
		},
		"one whose latest spec has not reached a cluster": {
			webTemplate, []string{webDone, strings.Replace(webDone, `generation: "2"`, `generation: "1"`, 1)},
			verdict{"InProgress: Deployment generation is 2, but latest observed generation is 1", `waits: Waiting for deployment spec update to be observed...`},
		},
		"one whose latest spec a cluster has not looked at": {
			webTemplate, []string{webDone, strings.Replace(webDone, `observedGeneration: 3`, `observedGeneration: 2`, 1)},
			verdict{"InProgress: Deployment generation is 2, but latest observed generation is 1", `waits: Waiting for deployment spec update to be observed...`},
		},
		"one that is rolling out in a cluster": {
			webTemplate, []string{webDone, webRolls},
			verdict{"InProgress: Updated: 3/4", `waits: Waiting for deployment "web" rollout to finish: 3 out of 4 new replicas have been updated...`},
		},
		"one that is stuck in a cluster": {
			webTemplate, []string{webStuck, webDone},
			verdict{"Failed: Progress deadline exceeded", `error: deployment "web" exceeded its progress deadline`},
		},
		"one whose counts are right while a cluster still says that it rolls out": {
			webTemplate, []string{webDone, strings.Replace(webDone, "NewReplicaSetAvailable", "ReplicaSetUpdated", 1)},
			verdict{"InProgress: ReplicaSet not Available", `done: deployment "web" successfully rolled out`},
		},
		"one that is not available in a cluster": {
			webTemplate, []string{strings.Replace(webDone, `Available, status: "True"`, `Available, status: "False"`, 1), webDone},
			verdict{"InProgress: Deployment not Available", `done: deployment "web" successfully rolled out`},
		},
		"one without a deadline": {
			strings.Replace(webTemplate, ", progressDeadlineSeconds: 600", "", 1),
			[]string{strings.Replace(webDone, "Progressing", "Other", 1), strings.Replace(webDone, "Progressing", "Other", 1)},
			verdict{"Current: Deployment is available. Replicas: 4", `done: deployment "web" successfully rolled out`},
		},
		"one that asks for nothing and stands nowhere": {
			idleTemplate("Deployment", "replicas: 0, progressDeadlineSeconds: 600"), nil,
			verdict{"Current: Deployment is available. Replicas: 0", `done: deployment "w" successfully rolled out`},
		},
		"one that asks for nothing, without a deadline": {
			idleTemplate("Deployment", "replicas: 0"), nil,
			verdict{"Current: Deployment is available. Replicas: 0", `done: deployment "w" successfully rolled out`},
		},
		"one that asks for something and stands nowhere": {
			idleTemplate("Deployment", "replicas: 2, progressDeadlineSeconds: 600"), nil,
			verdict{"InProgress: Replicas: 0/2", `waits: Waiting for deployment "w" rollout to finish: 0 out of 2 new replicas have been updated...`},
		},
		"a stateful set that stands nowhere": {
			idleTemplate("StatefulSet", "replicas: 0, updateStrategy: {type: RollingUpdate}"), nil,
			verdict{"Current: All replicas scheduled as expected. Replicas: 0", `done: statefulset rolling update complete 0 pods at revision ...`},
		},
		"a daemon set that stands nowhere": {
			idleTemplate("DaemonSet", "updateStrategy: {type: RollingUpdate}"), nil,
			verdict{"Current: All replicas scheduled as expected. Replicas: 0", `done: daemon set "w" successfully rolled out`},
		},
		"a replica set that stands nowhere": {
			idleTemplate("ReplicaSet", "replicas: 0"), nil, verdict{Kstatus: "Current: ReplicaSet is available. Replicas: 0"},
		},
		"a stateful set that is everywhere": {
			dbTemplate, []string{dbDone, dbDone},
			verdict{"Current: All replicas scheduled as expected. Replicas: 2", `done: statefulset rolling update complete 2 pods at revision db-new...`},
		},
		"one that is rolling out in a cluster, the second": {
			dbTemplate, []string{dbDone, dbRolls},
			verdict{"InProgress: Waiting for updated revision to match current", `waits: waiting for statefulset rolling update to complete 1 pods at revision db-new...`},
		},
		"one whose revisions differ by cluster, and are current in each": {
			dbTemplate, []string{dbDone, strings.ReplaceAll(dbDone, "db-new", "db-other")},
			verdict{"Current: All replicas scheduled as expected. Replicas: 2", `done: statefulset rolling update complete 2 pods at revision db-new...`},
		},
		"one that a cluster has not seen": {
			dbTemplate, []string{dbDone, strings.Replace(dbDone, "observedGeneration: 1", "observedGeneration: 0", 1)},
			verdict{"InProgress: StatefulSet generation is 2, but latest observed generation is 1", `waits: Waiting for statefulset spec update to be observed...`},
		},
		"a daemon set that is on every node": {
			logTemplate, []string{logDone, logDone},
			verdict{"Current: All replicas scheduled as expected. Replicas: 6", `done: daemon set "log" successfully rolled out`},
		},
		"one that is not up to date on a node": {
			logTemplate, []string{logDone, logRolls},
			verdict{"InProgress: Updated: 5/6", `waits: Waiting for daemon set "log" rollout to finish: 5 out of 6 new pods have been updated...`},
		},
		"a replica set that is everywhere": {
			rsTemplate, []string{rsDone, rsDone}, verdict{Kstatus: "Current: ReplicaSet is available. Replicas: 2"},
		},
		"one that may not make pods in a cluster": {
			rsTemplate, []string{rsDone, strings.Replace(rsDone, "replicas: 1,", `replicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: no quota}],`, 1)},
			verdict{Kstatus: "InProgress: Replica Failure condition. Check Pods"},
		},
		"a replication controller that is everywhere": {
			rcTemplate, []string{rsDone, rsDone}, verdict{Kstatus: "Current: Resource is current"},
		},
		"one that a cluster has not looked at": {
			rcTemplate, []string{rsDone, strings.Replace(rsDone, "observedGeneration: 1", "observedGeneration: 0", 1)},
			verdict{Kstatus: "InProgress: ReplicationController generation is 2, but latest observed generation is 1"},
		},
		"a job that has completed everywhere": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, generation: 1}, spec: {completions: 2}}`,
			[]string{jobDone, jobDone}, verdict{Kstatus: "Current: Job Completed. succeeded: 2/2"},
		},
		"a job that has not started in a cluster": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, generation: 1}, spec: {completions: 2}}`,
			[]string{jobDone, "-"}, verdict{Kstatus: "InProgress: Job not started"},
		},
		"a job that has failed in a cluster": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j, generation: 1}, spec: {completions: 2}}`,
			[]string{jobDone, strings.Replace(jobDone, "Complete", "Failed", 1)}, verdict{Kstatus: "Failed: Job Failed. failed: 0/2"},
		},
		"a claim that is bound everywhere": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}}`,
			[]string{`{status: {phase: Bound}}`, `{status: {phase: Bound}}`}, verdict{Kstatus: "Current: PVC is Bound"},
		},
		"a claim that is lost in a cluster": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}}`,
			[]string{`{status: {phase: Bound}}`, `{status: {phase: Lost}}`}, verdict{Kstatus: "InProgress: PVC is not Bound. phase: Lost"},
		},
		"a pod that is ready everywhere": {
			podTemplate, []string{podReady, podReady}, verdict{Kstatus: "Current: Pod is Ready"},
		},
		"a pod that is not ready in a cluster": {
			podTemplate, []string{podReady, strings.Replace(podReady, `status: "True"`, `status: "False"`, 1)},
			verdict{Kstatus: "InProgress: Pod is running but is not Ready"},
		},
		"a pod that crashes in a cluster": {
			podTemplate, []string{podReady, `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`},
			verdict{Kstatus: "Failed: Containers in CrashLoop state: m2/a"},
		},
		"a pod that fits on no node of a cluster": {
			podTemplate, []string{podReady, `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes}]}}`},
			verdict{Kstatus: "Failed: Pod could not be scheduled"},
		},
		"a budget that a cluster has not looked at": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, generation: 2}, status: {observedGeneration: 1}}`,
			[]string{budgetSeen, strings.Replace(budgetSeen, "observedGeneration: 1", "observedGeneration: 0", 1)},
			verdict{Kstatus: "InProgress: PodDisruptionBudget generation is 2, but latest observed generation is 1"},
		},
		"a budget that all have looked at": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, generation: 2}, status: {observedGeneration: 1}}`,
			[]string{budgetSeen, budgetSeen}, verdict{Kstatus: "Current: AllowedDisruptions has been computed."},
		},
		"an autoscaler that all have looked at": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, generation: 2}, status: {observedGeneration: 1}}`,
			[]string{budgetSeen, budgetSeen}, verdict{Kstatus: "Current: Resource is current"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(t, rolled(t, tc.template, tc.copies))); diff != "" {
				t.Errorf("what tools say (-want +got):\n%s", diff)
			}
		})
	}
}

const (
	jobDone = `{status: {succeeded: 1, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T01:00:00Z", conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T01:00:00Z"}]}}`

	podTemplate = `{apiVersion: v1, kind: Pod, metadata: {name: p, generation: 2, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {restartPolicy: Always, containers: [{name: a}]}, status: {phase: Pending}}`
	podReady    = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, phase: Running, conditions: [{type: Ready, status: "True"}, {type: PodScheduled, status: "True"}], containerStatuses: [{name: a, ready: true, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`

	budgetSeen = `{metadata: {generation: 1, ` + templateGeneration + `}, status: {observedGeneration: 1, expectedPods: 1}}`
)

// TestDuplicatesCountTogether checks that counts are sums over clusters whatever
// the policy: for a Deployment that is duplicated, kstatus waits for the replicas
// beyond spec.replicas to go, and kubectl does not.
func TestDuplicatesCountTogether(t *testing.T) {
	template := strings.Replace(webTemplate, "replicas: 4", "replicas: 2", 1)
	want := verdict{"InProgress: Pending termination: 2", `done: deployment "web" successfully rolled out`}
	if diff := cmp.Diff(want, judge(t, rolled(t, template, []string{webDone, webDone}))); diff != "" {
		t.Errorf("what tools say (-want +got):\n%s", diff)
	}
}
