package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// templates is a store with one template, or that knows nothing yet.
type templates struct {
	template *unstructured.Unstructured
	presence templatestore.Presence
}

func (s templates) Get(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	return s.template, s.presence, nil
}

func (templates) Put(*unstructured.Unstructured) {}

// rule adds up as configured.
type rule func(items []workv1alpha2.AggregatedStatusItem) (map[string]any, error)

func (r rule) AggregateStatus(_ *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (map[string]any, bool, error) {
	status, err := r(items)
	return status, status != nil, err
}

func (rule) Unheard(_ *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem, _ map[string]time.Time) []workv1alpha2.AggregatedStatusItem {
	return items
}

func (rule) KnowsSilence(schema.GroupVersionKind) bool { return false }

// placed returns a binding of a kind that was placed on the clusters.
func placed(apiVersion, kind string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: "web"}
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	b.Annotations = placement.Decision{Record: placement.Record{Reason: "Success"}, AppliedPlacement: "{}"}.Annotations()
	return b
}

func TestTotal(t *testing.T) {
	ready := rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		return map[string]any{"ready": true}, nil
	})
	fails := rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) { return nil, errors.New("boom") })
	waits := rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		return nil, &interpreter.Error{Operation: "aggregate status", Err: &kinds.Pending{Of: "hook", After: 7 * time.Second}}
	})
	behind := rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		return map[string]any{"ready": true}, &kinds.Pending{Of: "hook", After: 7 * time.Second}
	})
	huge := rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		list := make([]any, 300_000)
		for i := range list {
			list[i] = "10.0.0.1"
		}
		return map[string]any{"list": list}, nil
	})
	one := []workv1alpha2.AggregatedStatusItem{item("a", true, workv1alpha2.ResourceHealthy, "1")}
	flood := make([]workv1alpha2.AggregatedStatusItem, 300)
	for i := range flood {
		flood[i] = item("a", true, workv1alpha2.ResourceHealthy, strings.Repeat("1", 256<<10))
	}
	there := &unstructured.Unstructured{Object: map[string]any{"kind": "X", "metadata": map[string]any{"name": "web"}}}
	leaving := there.DeepCopy()
	leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	undecided, decided := placed("v1", "X"), placed("v1", "X")
	undecided.Annotations, decided.Annotations = nil, nil
	decided.Status.AggregatedStatus = one
	present := templates{there, templatestore.Present}
	cases := map[string]struct {
		templates templates
		rule      rule
		binding   *workv1alpha2.ResourceBinding
		items     []workv1alpha2.AggregatedStatusItem
		after     time.Duration
		outcome   rollup.Total
		totals    bool
	}{
		"a template that is there":                               {present, ready, placed("v1", "X", "a"), one, 0, rollup.Total{}, true},
		"one that is not known yet is looked at again":           {templates{nil, templatestore.Unknown}, ready, placed("v1", "X", "a"), one, unknownPause, rollup.Total{Pending: true}, false},
		"not while there is nothing to tell it":                  {templates{nil, templatestore.Unknown}, ready, placed("v1", "X", "a"), nil, 0, rollup.Total{}, false},
		"one that is gone":                                       {templates{nil, templatestore.Absent}, ready, placed("v1", "X", "a"), one, 0, rollup.Total{}, false},
		"one that leaves":                                        {templates{leaving, templatestore.Present}, ready, placed("v1", "X", "a"), one, 0, rollup.Total{}, false},
		"one of which no cluster has reported is left as it was": {present, ready, placed("v1", "X", "a"), nil, 0, rollup.Total{}, false},
		"one that has yet to be placed is left, too":             {present, ready, undecided, nil, 0, rollup.Total{}, false},
		"one that is to stand nowhere has the status of nothing": {present, ready, placed("v1", "X"), nil, 0, rollup.Total{}, true},
		"one that nobody needs any more, too":                    {present, ready, decided, nil, 0, rollup.Total{}, true},
		"a rule that fails":                                      {present, fails, placed("v1", "X", "a"), one, firstRetry, rollup.Total{Fault: "boom"}, false},
		"an answer that is on its way":                           {present, waits, placed("v1", "X", "a"), one, 7 * time.Second, rollup.Total{Pending: true}, false},
		"one that says what held a moment ago":                   {present, behind, placed("v1", "X", "a"), one, 7 * time.Second, rollup.Total{Pending: true}, true},
		"statuses that are too large to be added up": {present, ready, placed("v1", "X", "a"), flood, firstRetry,
			rollup.Total{Fault: "aggregate status of X web: the clusters report more than 67108864 bytes together, which are the most that are added up"}, false},
		"a status that is too large for its template": {present, huge, placed("v1", "X", "a"), one, 0,
			rollup.Total{Shortened: "left out of the template's status, which is too large: all but 4096 of 300000 entries of list"}, true},
		"a kind whose status the hub's own loops write": {present, ready, placed("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "a"), one, 0, rollup.Total{}, false},
		"a kind of the hub's own":                       {present, ready, placed("gitops.flotilla.io/v1alpha1", "CommitStatus", "a"), one, 0, rollup.Total{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, tc.templates, tc.rule, Options{})
			s := &state{binding: tc.binding, items: tc.items}
			next, err := r.total(t.Context(), s)
			if err != nil || next.After != tc.after || next.Done || (s.total != nil) != tc.totals {
				t.Errorf("total = %+v, %v; status %v", next, err, s.total)
			}
			if diff := cmp.Diff(tc.outcome, s.outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAwaited: a rule hears of every cluster that is to hold the template, so
// that it does not take it for rolled out before the last has it, and nothing that
// Karmada would not tell it.
func TestAwaited(t *testing.T) {
	var heard []string
	r := New(nil, templates{&unstructured.Unstructured{Object: map[string]any{}}, templatestore.Present}, rule(func(items []workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		for _, item := range items {
			heard = append(heard, fmt.Sprintf("%s %t%s", item.ClusterName, item.Status != nil, item.Drift))
		}
		return nil, nil
	}), Options{})
	reported := item("b", true, workv1alpha2.ResourceHealthy, "1")
	reported.Drift = " somebody was here"
	s := &state{binding: placed("v1", "X", "a", "b", "c"), items: []workv1alpha2.AggregatedStatusItem{reported}}
	if _, err := r.total(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b true", "a false", "c false"}, heard); diff != "" {
		t.Errorf("clusters that the rule hears of (-want +got):\n%s", diff)
	}
	if s.items[0].Drift != reported.Drift {
		t.Errorf("the binding is told %q", s.items[0].Drift)
	}
}

// TestRetries: a rule that fails is asked less and less often, until it works.
func TestRetries(t *testing.T) {
	works := false
	r := New(nil, templates{&unstructured.Unstructured{Object: map[string]any{}}, templatestore.Present}, rule(func([]workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
		if works {
			return map[string]any{"ready": true}, nil
		}
		return nil, errors.New("boom")
	}), Options{})
	var got []time.Duration
	for i := range 12 {
		works = i == 10
		s := &state{key: client.ObjectKey{Name: "x"}, binding: placed("v1", "X", "a"), items: []workv1alpha2.AggregatedStatusItem{{}}}
		next, err := r.total(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if s.total != nil {
			r.recordWrite(s, nil)
		}
		got = append(got, next.After)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 0, 1}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked again after (-want +got):\n%s", diff)
	}
}

// TestLifeOfATotal: what templates show as clusters come and go.
func TestLifeOfATotal(t *testing.T) {
	type step struct {
		clusters []string // that it is placed on
		reports  string   // by cluster, as JSON
		want     string
	}
	const one = `{"replicas":2,"readyReplicas":2,"updatedReplicas":2,"availableReplicas":2,"generation":1,"observedGeneration":1,"resourceTemplateGeneration":1}`
	const none = `{"replicas":0,"generation":2,"observedGeneration":2,"resourceTemplateGeneration":2}`
	type numbers struct{ Replicas, ReadyReplicas, ObservedGeneration int64 }
	cases := map[string]struct {
		kind  string
		looks []step
	}{
		"a Deployment whose clusters leave one by one": {"apps/v1 Deployment", []step{
			{[]string{"a", "b"}, `{"a":` + one + `}`, "2 2 0"}, // b has yet to hear of it
			{[]string{"a", "b"}, `{"a":` + one + `,"b":` + one + `}`, "4 4 1"},
			{[]string{"b"}, `{"b":` + one + `}`, "2 2 1"},
			{[]string{"c"}, `{}`, "2 2 1"}, // c is about to be sent it
			{nil, `{}`, "0 0 1"},
			{[]string{"a"}, `{"a":` + one + `}`, "2 2 1"},
		}},
		"a StatefulSet that is scaled to nothing": {"apps/v1 StatefulSet", []step{
			{[]string{"a"}, `{"a":` + one + `}`, "2 2 1"},
			{[]string{"a"}, `{"a":` + none + `}`, "0 0 1"},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tc.kind, " ")
			template := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(1)},
			}}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build() // knows no cluster
			r := New(hub, templates{template, templatestore.Present}, interpreter.Native(), Options{})
			for i, l := range tc.looks {
				s := &state{binding: placed(apiVersion, kind, l.clusters...)}
				var byCluster map[string]json.RawMessage
				if err := utiljson.Unmarshal([]byte(l.reports), &byCluster); err != nil {
					t.Fatal(err)
				}
				for _, c := range l.clusters {
					if raw, ok := byCluster[c]; ok {
						s.items = append(s.items, workv1alpha2.AggregatedStatusItem{ClusterName: c, Status: &runtime.RawExtension{Raw: raw}})
					}
				}
				if _, err := r.total(t.Context(), s); err != nil || s.outcome != (rollup.Total{}) {
					t.Fatal(err, s.outcome)
				}
				if s.total != nil {
					template.Object["status"] = s.total
				}
				data, err := json.Marshal(template.Object["status"])
				if err != nil {
					t.Fatal(err)
				}
				var got, want numbers
				if err := json.Unmarshal(data, &got); err != nil {
					t.Fatal(err)
				}
				for j, n := range strings.Fields(l.want) {
					*[]*int64{&want.Replicas, &want.ReadyReplicas, &want.ObservedGeneration}[j] = int64(n[0] - '0')
				}
				if got != want {
					t.Errorf("look %d: status %s, want %v", i, data, want)
				}
			}
		})
	}
}
