package status

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

func reports(fully, scheduled metav1.ConditionStatus, items ...workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBindingStatus {
	out := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: items}
	if fully != "" {
		out.Conditions = append(out.Conditions, metav1.Condition{Type: workv1alpha2.FullyApplied, Status: fully})
	}
	if scheduled != "" {
		out.Conditions = append(out.Conditions, metav1.Condition{Type: workv1alpha2.Scheduled, Status: scheduled})
	}
	return out
}

// stays returns a status that says that the template is to be moved, and cannot be.
func stays(of *workv1alpha2.ResourceBindingStatus) *workv1alpha2.ResourceBindingStatus {
	of.Conditions = append(of.Conditions, metav1.Condition{Type: workv1alpha2.Evictable, Status: metav1.ConditionFalse})
	return of
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
		"a placement was decided":                        {reports("", ""), reports(no, yes), false},
		"no placement was found":                         {reports("", ""), reports(no, no), true},
		"it is to be moved, and cannot be":               {reports(yes, yes, item("a", true, well, "1")), stays(reports(yes, yes, item("a", true, well, "1"))), true},
		"it still cannot be moved":                       {stays(reports(yes, yes, item("a", true, well, "1"))), stays(reports(yes, yes, item("a", true, well, "2"))), false},
		"still no placement was found":                   {reports(no, no), reports(no, no), false},
		"one of two clusters has it":                     {reports(no, yes), reports(no, yes, item("a", true, ill, "1")), false},
		"all clusters have it":                           {reports(no, yes, item("a", true, ill, "1")), reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), true},
		"one of two clusters is well":                    {reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), false},
		"all clusters are well":                          {reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, well, "1"), item("b", true, well, "1")), true},
		"one fell ill":                                   {reports(yes, yes, item("a", true, well, "1"), item("b", true, ill, "1")), reports(yes, yes, item("a", true, ill, "1"), item("b", true, ill, "1")), true},
		"one lost it":                                    {reports(no, yes, item("a", true, ill, "1")), reports(no, yes, item("a", false, ill, "1")), true},
		"numbers move":                                   {reports(yes, yes, item("a", true, ill, "1")), reports(yes, yes, item("a", true, ill, "2")), false},
		"a cluster is there for the first time and ill":  {reports(no, yes), reports(no, yes, item("a", false, ill, "1")), false},
		"another cluster is to have it":                  {reports(yes, yes, item("a", true, well, "1")), reports(no, yes, item("a", true, well, "1"), item("b", false, "", "")), false},
		"another cluster is to have it, and one lost it": {reports(yes, yes, item("a", true, well, "1")), reports(no, yes, item("a", false, ill, "1"), item("b", false, "", "")), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := urgent(tc.was, tc.is); got != tc.want {
				t.Errorf("urgent = %t", got)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	const no, yes = metav1.ConditionFalse, metav1.ConditionTrue
	const well, ill = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	none := reports(no, yes)
	part := reports(no, yes, item("a", true, ill, "1"))
	all := reports(yes, yes, item("a", true, ill, "1"))
	more := reports(yes, yes, item("a", true, ill, "2"))
	most := reports(yes, yes, item("a", true, ill, "3"))
	fell := reports(yes, yes, item("a", true, ill, "4"))
	rose := reports(yes, yes, item("a", true, well, "4"))
	moves := reports(no, yes, item("a", true, well, "4"), item("b", false, "", ""))
	moved := reports(yes, yes, item("a", true, well, "4"), item("b", true, well, "4"))
	lost := reports(no, yes, item("a", true, ill, "4"), item("b", false, "", ""))
	// A look comes after so many milliseconds; the template's status differs or not.
	type step struct {
		after   int
		was, is *workv1alpha2.ResourceBindingStatus
		total   bool
	}
	// What is written: "-" for nothing, and after how many milliseconds to look again.
	cases := map[string]struct {
		looks []step
		want  []string
	}{
		"nothing new is not written": {[]step{{0, none, none, false}}, []string{"- 0"}},
		"partial progress waits for quiet, completion for a moment": {
			[]step{{0, none, part, false}, {40, none, part, false}, {0, none, all, false}, {20, none, all, false}},
			[]string{"- 100", "- 60", "- 20", "binding 0"},
		},
		"progress that never rests is told after a second": {
			[]step{{0, all, more, false}, {90, all, most, false}, {900, all, more, false}, {10, all, most, false}},
			[]string{"- 100", "- 100", "- 10", "binding 0"},
		},
		"what the template tells, the binding tells a second later": {
			[]step{{0, all, more, true}, {100, all, more, true}, {0, all, more, false}, {1000, all, more, false}},
			[]string{"- 100", "template 1000", "- 1000", "binding 0"},
		},
		"or later still, while the template goes on telling": {
			[]step{{0, all, more, true}, {100, all, more, true}, {900, all, most, true}, {100, all, most, true}, {2000, all, most, false}},
			[]string{"- 100", "template 1000", "- 100", "template 1000", "binding 0"},
		},
		"but at once when it is news": {
			[]step{{0, all, more, true}, {100, all, more, true}, {0, none, more, false}, {20, none, more, false}},
			[]string{"- 100", "template 1000", "- 20", "binding 0"},
		},
		"that another cluster is to have it is told with what that reports": {
			[]step{{0, rose, moves, false}, {900, rose, moves, false}, {0, rose, moved, false}, {100, rose, moved, false}},
			[]string{"- 1000", "- 100", "- 100", "binding 0"},
		},
		"or a second later, in all": {
			[]step{{0, rose, moves, true}, {500, rose, moves, true}, {500, rose, moves, true}},
			[]string{"- 1000", "- 500", "template+binding 0"},
		},
		"but not what is worse meanwhile": {
			[]step{{0, rose, moves, false}, {500, rose, lost, false}, {20, rose, lost, false}},
			[]string{"- 1000", "- 20", "binding 0"},
		},
		"health that changes is told by both at once": {
			[]step{{0, rose, fell, true}, {20, rose, fell, true}, {0, fell, rose, true}, {20, fell, rose, true}, {0, rose, rose, false}},
			[]string{"- 20", "template+binding 0", "- 20", "template+binding 0", "- 0"},
		},
		"and health that changes ends what the binding had yet to tell": {
			[]step{{0, all, more, true}, {100, all, more, true}, {0, all, rose, true}, {20, all, rose, true}},
			[]string{"- 100", "template 1000", "- 20", "template+binding 0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			r := New(nil, nil, nil, Options{Clock: clock})
			var got []string
			for _, l := range tc.looks {
				clock.SetTime(clock.Now().Add(time.Duration(l.after) * time.Millisecond))
				s := &state{key: client.ObjectKey{Name: "web"}, binding: &workv1alpha2.ResourceBinding{Status: *l.was}, status: *l.is, items: l.is.AggregatedStatus}
				if l.total {
					s.total = map[string]any{}
				}
				next, err := r.debounce(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				var wrote []string
				if s.total != nil && !next.Done {
					wrote = append(wrote, "template")
				}
				if s.changed && !next.Done {
					wrote = append(wrote, "binding")
				}
				if len(wrote) == 0 {
					wrote = []string{"-"}
				} else {
					r.delays.sent(s)
				}
				got = append(got, fmt.Sprint(strings.Join(wrote, "+"), " ", next.After.Milliseconds()))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnEndIsNoNumber: that a Job has come to its end is told by its binding as soon as by its template: who moves it goes by that.
func TestAnEndIsNoNumber(t *testing.T) {
	const yes = metav1.ConditionTrue
	status := func(text string) *workv1alpha2.ResourceBindingStatus {
		one := item("a", true, workv1alpha2.ResourceHealthy, "")
		one.Status = &runtime.RawExtension{Raw: []byte(text)}
		return reports(yes, yes, one)
	}
	runs, more := status(`{"active":1}`), status(`{"active":1,"succeeded":1}`)
	complete := status(`{"succeeded":2,"conditions":[{"type":"Complete","status":"True"}]}`)
	counted := status(`{"succeeded":2,"conditions":[{"type":"Complete","status":"True"}],"completionTime":"2026-01-02T12:00:00Z"}`)
	for name, tc := range map[string]struct {
		was, is *workv1alpha2.ResourceBindingStatus
		later   bool
	}{
		"it counts":                      {runs, more, true},
		"it is complete":                 {more, complete, false},
		"it was, and says more about it": {complete, counted, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			r := New(nil, nil, nil, Options{Clock: clock})
			b := &workv1alpha2.ResourceBinding{Status: *tc.was}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "batch/v1", Kind: "Job"}
			var s *state
			for range 2 {
				s = &state{key: client.ObjectKey{Name: "import"}, binding: b, status: *tc.is, items: tc.is.AggregatedStatus, total: map[string]any{}}
				if _, err := r.debounce(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				clock.SetTime(clock.Now().Add(100 * time.Millisecond))
			}
			if s.changed == tc.later {
				t.Errorf("the binding is written with the template: %t", s.changed)
			}
		})
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
			got := bindingOf(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("bindingOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheHubIsTriedAgainSoonAfterALongTimeOut(t *testing.T) {
	l := limiter()
	var wait time.Duration
	for range 100 {
		wait = l.When(reconcile.Request{})
	}
	if wait != 30*time.Second {
		t.Errorf("it is tried again after %s", wait)
	}
}

// TestNoTemplateIsAheadOfItsBinding: the binding is reported first, and where that fails the
// template is not reported.
func TestNoTemplateIsAheadOfItsBinding(t *testing.T) {
	away := apierrors.NewServiceUnavailable("away")
	for name, tc := range map[string]struct {
		binding, template error
		want              []string
		fails             bool
	}{
		"both":                             {want: []string{"ResourceBinding", "Deployment"}},
		"the binding cannot be told":       {binding: away, want: []string{"ResourceBinding"}, fails: true},
		"the template cannot be told":      {template: away, want: []string{"ResourceBinding", "Deployment"}, fails: true},
		"the binding is refused":           {binding: apierrors.NewBadRequest("no"), want: []string{"ResourceBinding", "Deployment"}, fails: true},
		"the template's status is refused": {template: apierrors.NewBadRequest("no"), want: []string{"ResourceBinding", "Deployment", "ResourceBinding"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					if _, is := obj.(*workv1alpha2.ResourceBinding); is {
						got = append(got, "ResourceBinding")
						return tc.binding
					}
					got = append(got, obj.GetObjectKind().GroupVersionKind().Kind)
					return tc.template
				},
			}).Build()
			r := New(hub, templates{}, nil, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
			template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", UID: "u"}}
			s := &state{
				key: client.ObjectKeyFromObject(b), binding: b, template: template, total: map[string]any{"readyReplicas": int64(2)}, changed: true,
				status: *reports(metav1.ConditionTrue, metav1.ConditionTrue, item("a", true, workv1alpha2.ResourceHealthy, "2")),
			}
			if _, err := r.write(t.Context(), s); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			if !refused(tc.template) {
				return
			}
			// What is refused again is reported all the while, and no more once it is accepted.
			before := s.status
			for _, again := range []struct {
				template error
				want     []string
			}{{tc.template, []string{"Deployment"}}, {nil, []string{"Deployment", "ResourceBinding"}}} {
				got, tc.template = nil, again.template
				b.Status, s.outcome = before, rollup.Total{}
				if _, err := r.collect(t.Context(), s); err != nil {
					t.Error(err)
				}
				if _, err := r.write(t.Context(), s); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(again.want, got); diff != "" {
					t.Errorf("written later (-want +got):\n%s", diff)
				}
			}
		})
	}
}
