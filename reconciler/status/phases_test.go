package status

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/template/store"
)

func reports(fully, scheduled metav1.ConditionStatus, items ...workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBindingStatus {
	out := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: items}
	for kind, status := range map[string]metav1.ConditionStatus{workv1alpha2.FullyApplied: fully, workv1alpha2.Scheduled: scheduled} {
		if status != "" {
			out.Conditions = append(out.Conditions, metav1.Condition{Type: kind, Status: status})
		}
	}
	return out
}

func item(cluster string, applied bool, health workv1alpha2.ResourceHealth, raw string) workv1alpha2.AggregatedStatusItem {
	return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied, Health: health, Status: &runtime.RawExtension{Raw: []byte(raw)}}
}

func TestUrgent(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	const well, ill = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	cases := map[string]struct {
		was, is *workv1alpha2.ResourceBindingStatus
		want    bool
	}{
		"a placement was decided":                       {reports("", ""), reports(no, yes), false},
		"no placement was found":                        {reports("", ""), reports(no, no), true},
		"still no placement was found":                  {reports(no, no), reports(no, no), false},
		"one of two clusters has it":                    {reports(no, yes), reports(no, yes, item("a", true, ill, "1")), false},
		"all clusters have it":                          {reports(no, yes, item("a", true, ill, "1")), reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), true},
		"one of two clusters is well":                   {reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), false},
		"all clusters are well":                         {reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, well, "1"), item("b", true, well, "1")), true},
		"one fell ill":                                  {reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), true},
		"one lost it":                                   {reports(no, yes, item("a", true, ill, "1")), reports(no, yes, item("a", false, ill, "1")), true},
		"numbers move":                                  {reports(yes, yes, item("a", true, ill, "1")), reports(yes, yes, item("a", true, ill, "2")), false},
		"a cluster is there for the first time and ill": {reports(no, yes), reports(no, yes, item("a", false, ill, "1")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := urgent(tc.was, tc.is); got != tc.want {
				t.Errorf("urgent = %t", got)
			}
		})
	}
}

func TestHold(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := New(nil, nil, nil, Options{Clock: clock})
	key := client.ObjectKey{Namespace: "shop", Name: "web-deployment"}
	look := func(was, is *workv1alpha2.ResourceBindingStatus) time.Duration {
		t.Helper()
		b := &workv1alpha2.ResourceBinding{Status: *was}
		next, err := r.hold(t.Context(), &state{key: key, binding: b, status: *is})
		if err != nil {
			t.Fatal(err)
		}
		if !next.Done {
			return -1 // goes on to write
		}
		return next.After
	}
	none := reports(metav1.ConditionFalse, metav1.ConditionTrue)
	part := reports(metav1.ConditionFalse, metav1.ConditionTrue, item("a", true, workv1alpha2.ResourceUnhealthy, "1"))
	all := reports(metav1.ConditionTrue, metav1.ConditionTrue, item("a", true, workv1alpha2.ResourceUnhealthy, "1"))
	var got []time.Duration
	got = append(got, look(none, none), look(none, part))
	clock.SetTime(clock.Now().Add(100 * time.Millisecond))
	got = append(got, look(none, part), look(none, all))
	clock.SetTime(clock.Now().Add(20 * time.Millisecond))
	got = append(got, look(none, all))
	if diff := cmp.Diff([]time.Duration{0, 250 * time.Millisecond, 150 * time.Millisecond, 20 * time.Millisecond, -1}, got); diff != "" {
		t.Errorf("held back (-want +got):\n%s", diff)
	}
}

func TestBindingOf(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        []reconcile.Request
	}{
		"a Work of a binding": {
			map[string]string{"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "web-deployment"},
			[]reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web-deployment"}}},
		},
		"a Work of a cluster binding": {
			map[string]string{"clusterresourcebinding.karmada.io/name": "reader-clusterrole"},
			[]reconcile.Request{{NamespacedName: client.ObjectKey{Name: "reader-clusterrole"}}},
		},
		"a Work of a namespace": {nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := bindingOf(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("bindingOf (-want +got):\n%s", diff)
			}
		})
	}
}

// shelf is a store with one template, or that knows nothing yet.
type shelf struct {
	template *unstructured.Unstructured
	presence store.Presence
}

func (s shelf) Get(context.Context, store.Key) (*unstructured.Unstructured, store.Presence, error) {
	return s.template, s.presence, nil
}

func (shelf) Put(*unstructured.Unstructured) {}

// sum says that everything is ready.
type sum struct{}

func (sum) AggregateStatus(*unstructured.Unstructured, []workv1alpha2.AggregatedStatusItem) (map[string]any, bool, error) {
	return map[string]any{"ready": true}, true, nil
}

func TestTotal(t *testing.T) {
	one := reports("", "", item("a", true, workv1alpha2.ResourceHealthy, "1"))
	there, leaving := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	cases := map[string]struct {
		shelf  shelf
		status *workv1alpha2.ResourceBindingStatus
		after  time.Duration
		totals bool
	}{
		"a template that is there":                               {shelf{there, store.Present}, one, 0, true},
		"one that is not known yet is looked at again":           {shelf{nil, store.Unknown}, one, unknownPause, false},
		"not while there is nothing to tell it":                  {shelf{nil, store.Unknown}, reports("", ""), 0, false},
		"one that is gone":                                       {shelf{nil, store.Absent}, one, 0, false},
		"one that leaves":                                        {shelf{leaving, store.Present}, one, 0, false},
		"one of which no cluster has reported is left as it was": {shelf{there, store.Present}, reports("", ""), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(nil, tc.shelf, sum{}, Options{})
			s := &state{binding: &workv1alpha2.ResourceBinding{}, status: *tc.status}
			next, err := r.total(t.Context(), s)
			if err != nil || next.After != tc.after || next.Done || (s.total != nil) != tc.totals {
				t.Errorf("total = %+v, %v; status %v", next, err, s.total)
			}
		})
	}
}
