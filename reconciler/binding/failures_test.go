package binding

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// diary keeps the events on bindings; those on their templates
// are the same.
type diary []string

func (d *diary) Event(obj runtime.Object, _, reason, message string) {
	if _, about := obj.(*workv1alpha2.ResourceBinding); about {
		*d = append(*d, reason+": "+message)
	}
}

var errUnfit = &override.Error{Policy: "shop/o", Rule: 1, Overrider: "plaintext[0]", Path: "/spec/x", Err: errors.New("nothing is there")}

func unfit() error {
	return planError(plan.WorkPlan{Err: errUnfit})
}

// TestReportFailures follows a binding through several passes.
func TestReportFailures(t *testing.T) {
	const (
		eastOverride = "ApplyOverridePolicyFailed: cluster east: override policy shop/o: overrideRules[1].plaintext[0] at /spec/x: nothing is there"
		eastRule     = "SyncWorkFailed: cluster east: revise replicas of X x: nil"
		westRefused  = "SyncWorkFailed: cluster west: works.work.karmada.io \"w\" is forbidden: no"
	)
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "work.karmada.io", Resource: "works"}, "w", errors.New("no"))
	passing := errors.New("connection refused")
	type pass struct {
		faults []fault
		early  bool  // it ended before all clusters were handled
		err    error // of an early end
		gone   bool
		want   []string
	}
	bad, good := fault{"east", unfit()}, []fault(nil)
	rule := fault{"east", planError(plan.WorkPlan{Err: &interpreter.Error{Operation: "revise replicas", Kind: "X", Name: "x", Err: errors.New("nil")}})}
	cases := map[string][]pass{
		"an override that does not fit is told of once, until it fits": {
			{faults: []fault{bad}, want: []string{eastOverride}}, {faults: []fault{bad}}, {faults: good}, {faults: []fault{bad}, want: []string{eastOverride}},
		},
		"a pass that ends early says nothing about it": {
			{faults: []fault{bad}, want: []string{eastOverride}}, {early: true}, {faults: []fault{bad}},
		},
		"nor does one that cannot read": {
			{faults: []fault{bad}, want: []string{eastOverride}}, {early: true, err: passing}, {faults: []fault{bad}},
		},
		"a fault that may pass hides none that needs a person": {
			{faults: []fault{bad, {"west", passing}}, want: []string{eastOverride}}, {faults: []fault{bad, {"west", passing}}}, {faults: []fault{bad}},
		},
		"each reason is told of by itself": {
			{faults: []fault{bad}, want: []string{eastOverride}},
			{faults: []fault{bad, {"west", refused}}, want: []string{westRefused}},
			{faults: []fault{{"west", refused}}},
			{faults: []fault{bad, {"west", refused}}, want: []string{eastOverride}},
		},
		"what the server refuses and then cannot answer is still the same failure": {
			{faults: []fault{{"west", refused}}, want: []string{westRefused}}, {faults: []fault{{"west", passing}}}, {faults: []fault{{"west", refused}}},
		},
		"what waits for something else is not told of": {
			{faults: []fault{{"west", loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, time.Second, refused)}}},
		},
		"a rule about the kind that fails is told of once, and again after it worked": {
			{faults: []fault{rule}, want: []string{eastRule}}, {faults: []fault{rule}}, {early: true}, {faults: good}, {faults: []fault{rule}, want: []string{eastRule}},
		},
		"another cluster is news": {
			{faults: []fault{bad}, want: []string{eastOverride}},
			{faults: []fault{{"west", unfit()}, bad}, want: []string{"ApplyOverridePolicyFailed: clusters east, west: " + errUnfit.Error()}},
		},
		"a binding that is gone is forgotten": {
			{faults: []fault{bad}, want: []string{eastOverride}}, {gone: true}, {faults: []fault{bad}, want: []string{eastOverride}},
		},
	}
	for name, passes := range cases {
		t.Run(name, func(t *testing.T) {
			var d diary
			r := &Reconciler{events: &d}
			for i, p := range passes {
				d = nil
				s := state{binding: &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, failed: p.faults, complete: !p.early}
				if p.gone {
					s.binding = nil
				}
				err := p.err
				if !p.early {
					err = joined(p.faults)
				}
				r.reportFailures(&s, err)
				if diff := cmp.Diff(diary(p.want), d); diff != "" {
					t.Errorf("pass %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// TestWhenToLookAgain: the cluster that has to be tried again soonest decides.
func TestWhenToLookAgain(t *testing.T) {
	down := func(after time.Duration) error {
		return loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, after, errors.New("webhook h: EOF"))
	}
	cases := map[string]struct {
		awaits time.Duration
		failed []fault
		want   time.Duration
	}{
		"nothing waits":   {},
		"a manifest does": {awaits: time.Second, want: time.Second},
		"a manifest does, and another cluster needs a person":     {awaits: time.Second, failed: []fault{{"east", unfit()}}, want: time.Second},
		"a manifest does, and another cluster waits for longer":   {awaits: time.Second, failed: []fault{{"east", down(time.Minute)}}, want: time.Second},
		"two clusters wait for the same, the second one for less": {failed: []fault{{"east", down(time.Minute)}, {"west", down(time.Second)}}, want: time.Second},
		"one cluster needs a person":                              {failed: []fault{{"east", unfit()}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state{awaits: tc.awaits, failed: tc.failed}
			got, err := s.result(loop.Next{After: tc.awaits}, joined(tc.failed))
			if err != nil || got.RequeueAfter != tc.want {
				t.Errorf("looks again after %s, %v; want %s", got.RequeueAfter, err, tc.want)
			}
		})
	}
}

// TestJoined: clusters with the same fault are reported together, whatever their
// order, and the one that has to be tried again soonest decides.
func TestJoined(t *testing.T) {
	everywhere := []fault{}
	for _, c := range []string{"h", "g", "f", "e", "d", "c", "b", "a"} {
		everywhere = append(everywhere, fault{c, errUnfit})
	}
	passing := errors.New("connection refused")
	cases := map[string]struct {
		faults []fault
		want   string
		class  loop.Class
	}{
		"none":                            {},
		"one":                             {[]fault{{"east", unfit()}}, "cluster east: " + errUnfit.Error(), loop.ClassStalled},
		"the same in many":                {[]fault{{"b", unfit()}, {"a", unfit()}}, "clusters a, b: " + errUnfit.Error(), loop.ClassStalled},
		"the same nearly everywhere":      {everywhere, "clusters a, b, c, d, e and 3 more: " + errUnfit.Error(), loop.ClassRetry},
		"two, one of which may pass":      {[]fault{{"a", unfit()}, {"b", passing}}, "cluster b: connection refused\ncluster a: " + errUnfit.Error(), loop.ClassRetry},
		"one that is not of a cluster":    {[]fault{{"", passing}}, "connection refused", loop.ClassRetry},
		"six are named, not five and one": {append(everywhere[:0:0], everywhere[2:]...), "clusters a, b, c, d, e, f: " + errUnfit.Error(), loop.ClassRetry},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := joined(tc.faults)
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if class := loop.As(err, "").Class; class != tc.class {
				t.Errorf("class = %v, want %v", class, tc.class)
			}
		})
	}
}
