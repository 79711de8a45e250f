package binding

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// unwatched has no template.
type unwatched struct{}

func (unwatched) State(schema.GroupVersionKind) templatestore.State { return templatestore.Unwanted }

func (unwatched) Get(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	return nil, templatestore.Unknown, nil
}

var shop = client.ObjectKey{Namespace: "team", Name: "shop"}

// applied returns the state of a pass over a template of Kustomization shop and its binding, which is for this version
// of the template, or for the one before.
func applied(t *testing.T, stands bool) *state {
	t.Helper()
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "team", "name": "web"}}}
	template.SetLabels(inventory.OwnerLabels(shop))
	digest, err := propagation.Digest(template)
	if err != nil {
		t.Fatal(err)
	}
	if !stands {
		digest = "of another version"
	}
	b := &workv1alpha2.ResourceBinding{}
	b.Annotations = map[string]string{propagation.DigestAnnotation: digest}
	return &state{key: client.ObjectKey{Namespace: "team", Name: "web-configmap"}, template: template, binding: b}
}

func TestWhatIsHalfWrittenWaits(t *testing.T) {
	tracker := revisiongate.New(nil, unwatched{})
	var again []ctrl.Request
	w := newRevisionGate(tracker, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, func(req ctrl.Request) { again = append(again, req) })
	waits := func(s *state) bool {
		t.Helper()
		next, err := w.awaitRevision(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		return next.Done || s.held
	}
	if waits(applied(t, false)) {
		t.Error("it waits, and nothing is being switched")
	}
	tracker.Begin(shop, revisiongate.All)
	if waits(applied(t, true)) {
		t.Error("it waits, and stands as it was")
	}
	if !waits(applied(t, false)) {
		t.Error("a new version does not wait for the rest of its revision")
	}
	tracker.End(t.Context(), shop, nil)
	if len(again) != 1 || waits(applied(t, false)) {
		t.Errorf("once it is switched %v is looked at", again)
	}
}

// The gate waits for a binding on which a new decision is due, but not for ever: a decision that never comes
// must not keep a template from its clusters.
func TestABindingThatIsUndecided(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	undecided := true
	opts := Options{Clock: clock, Undecided: func(context.Context, *unstructured.Unstructured, workv1alpha2.Binding) bool { return undecided }}
	w := newRevisionGate(revisiongate.New(nil, unwatched{}), opts, func(ctrl.Request) {})
	goesOn := func() bool {
		t.Helper()
		_, next := w.overrides(t.Context(), applied(t, true))
		if next.Done && next.After == 0 {
			t.Error("nothing brings it back")
		}
		return !next.Done
	}
	if goesOn() {
		t.Error("it goes on before its binding is decided")
	}
	clock.SetTime(time.Unix(9, 0))
	if goesOn() {
		t.Error("it goes on after 9 s")
	}
	clock.SetTime(time.Unix(11, 0))
	if !goesOn() {
		t.Error("it waits for ever")
	}
	undecided = false
	if !goesOn() {
		t.Error("it waits for a binding that is decided")
	}
}

// watched has one template.
type watched struct {
	unwatched
	template *unstructured.Unstructured
}

func (w watched) Get(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	return w.template, templatestore.Present, nil
}

// TestWhatHasNotLeftIsPrunedFromNowhere: even if its binding still has the annotation.
func TestWhatHasNotLeftIsPrunedFromNowhere(t *testing.T) {
	for name, left := range map[string]bool{"it left": true, "it did not": false} {
		s := applied(t, true)
		plan.SetPrunedFrom(s.binding, []string{"east"})
		before := s.binding
		tracker := revisiongate.New(nil, watched{template: s.template})
		if left {
			tracker.Begin(shop, revisiongate.All)
			tracker.End(t.Context(), shop, []inventory.Entry{{ID: inventory.IDOf(s.template), Version: "v1"}})
		}
		w := newRevisionGate(tracker, Options{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}, func(ctrl.Request) {})
		next, err := w.ignoreStalePrune(t.Context(), s)
		if err != nil || next.Done || (next.After > 0) == left {
			t.Errorf("%s: %+v, %v", name, next, err)
		}
		if len(plan.PrunedFrom(s.binding)) == 1 != left || len(plan.PrunedFrom(before)) != 1 {
			t.Errorf("%s: it is pruned from %v, and the binding that came in from %v", name, plan.PrunedFrom(s.binding), plan.PrunedFrom(before))
		}
	}
}
