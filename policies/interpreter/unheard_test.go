package interpreter_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
)

// TestUnheard checks what a template's status counts of cluster m2, of which nothing is heard any more: its replicas, and none of
// them as ready or available. Rules of others are given what the cluster reported.
func TestUnheard(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	own := func(r kinds.Rules) kinds.Layer {
		return kinds.Table{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}: r}
	}
	const (
		noChange = "unchanged"
		running  = `{"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"unavailableReplicas":0,"generation":3,"observedGeneration":3,"resourceTemplateGeneration":1,` +
			`"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
		failing = `{"replicas":2,"readyReplicas":1,"unavailableReplicas":5,"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable","message":"too few","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`
	)
	cases := map[string]struct {
		layers   []kinds.Layer
		template string
		items    []string // what m1, m2, … report; "-" for nothing
		want     string
	}{
		"a deployment": {
			template: `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}}`, items: []string{running, running},
			want: `{"availableReplicas":2,"conditions":[{"lastTransitionTime":"2026-01-02T12:00:00Z","message":"m2: nothing is heard of the cluster","reason":"ClusterSilent","status":"Unknown","type":"Available"}],` +
				`"observedGeneration":1,"readyReplicas":2,"replicas":4,"unavailableReplicas":2,"updatedReplicas":4}`,
		},
		"a deployment that was not available there": {
			template: `{apiVersion: apps/v1, kind: Deployment}`, items: []string{running, failing},
			want: `{"availableReplicas":2,"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"m2: too few","reason":"MinimumReplicasUnavailable","status":"False","type":"Available"}],` +
				`"readyReplicas":2,"replicas":4,"unavailableReplicas":5,"updatedReplicas":2}`,
		},
		"a deployment that never was there": {
			template: `{apiVersion: apps/v1, kind: Deployment}`, items: []string{`{"replicas":2,"readyReplicas":2}`, "-"},
			want: `{"availableReplicas":0,"readyReplicas":2,"replicas":2,"unavailableReplicas":0,"updatedReplicas":0}`,
		},
		"a stateful set": {
			template: `{apiVersion: apps/v1, kind: StatefulSet}`,
			items:    []string{running, `{"replicas":1,"currentReplicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"currentRevision":"a","updateRevision":"a"}`},
			want:     `{"availableReplicas":2,"currentReplicas":1,"currentRevision":"a","readyReplicas":2,"replicas":3,"updateRevision":"a","updatedReplicas":3}`,
		},
		"a replica set": {
			template: `{apiVersion: apps/v1, kind: ReplicaSet}`, items: []string{`{"replicas":1,"readyReplicas":1}`, `{"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":2}`},
			want: `{"availableReplicas":0,"fullyLabeledReplicas":2,"readyReplicas":1,"replicas":3}`,
		},
		"a daemon set": {
			template: `{apiVersion: apps/v1, kind: DaemonSet}`,
			items: []string{
				`{"desiredNumberScheduled":1,"numberReady":1,"numberAvailable":1}`,
				`{"desiredNumberScheduled":3,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberReady":3,"numberAvailable":2,"numberUnavailable":1}`,
			},
			want: `{"currentNumberScheduled":3,"desiredNumberScheduled":4,"numberAvailable":1,"numberMisscheduled":0,"numberReady":1,"numberUnavailable":3,"updatedNumberScheduled":3}`,
		},
		"a job that has ended": {
			template: `{apiVersion: batch/v1, kind: Job, status: {succeeded: 1, conditions: [{type: Complete, status: "True"}]}}`,
			items:    []string{"-", `{"succeeded":1}`}, want: noChange,
		},
		"a deployment whose status a rule of others adds up": {
			layers: []kinds.Layer{own(kinds.Rules{Aggregate: func(_ kinds.Object, items []workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
				return map[string]any{"given": string(items[1].Status.Raw)}, nil
			}})},
			template: `{apiVersion: apps/v1, kind: Deployment}`, items: []string{"-", `{"readyReplicas":2}`}, want: `{"given":"{\"readyReplicas\":2}"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			know, template := interpreter.New(append(tc.layers, native.Table())...), object(t, tc.template)
			var reported []workv1alpha2.AggregatedStatusItem
			for i, text := range tc.items {
				item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i))}
				if text != "-" {
					item.Status = &runtime.RawExtension{Raw: []byte(text)}
				}
				reported = append(reported, item)
			}
			if knows, want := know.KnowsSilence(template.GroupVersionKind()), template.GetKind() != "Job" && len(tc.layers) == 0; knows != want {
				t.Errorf("heeds silence: %t", knows)
			}
			items := know.Unheard(template, reported, map[string]time.Time{"m2": since, "m9": since})
			for i, text := range tc.items {
				if text != "-" && string(reported[i].Status.Raw) != text {
					t.Errorf("what came in was changed to %s", reported[i].Status.Raw)
				}
			}
			status, changed, err := know.AggregateStatus(template, items)
			if err != nil {
				t.Fatal(err)
			}
			got := noChange
			if changed {
				data, err := json.Marshal(status)
				if err != nil {
					t.Fatal(err)
				}
				got = string(data)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
