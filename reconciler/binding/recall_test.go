package binding

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// patches is a hub that records patches, or refuses them.
type patches struct {
	client.Client
	refuses error
	got     []string
}

func (p *patches) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if p.refuses != nil {
		return p.refuses
	}
	data, err := patch.Data(obj)
	p.got = append(p.got, string(data))
	return err
}

// TestRecall: an object that a Work cannot remove, and that is wanted again, stays for the next Work.
func TestRecall(t *testing.T) {
	const own, other = `{"apiVersion":"sea.example/v1","kind":"Boat","metadata":{"name":"a","namespace":"shop"}}`, `{"apiVersion":"sea.example/v1","kind":"Boat","metadata":{"name":"b","namespace":"shop"}}`
	leaving := func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	waits := func(w *workv1alpha1.Work) {
		w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] = "shop"
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkHoldsOthersReason}}
	}
	annotated := func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.WantedAgainAnnotation] = "true" }
	of := func(name string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey] = name }
	}
	resource := schema.GroupResource{Resource: "works"}
	const patch = `{"metadata":{"annotations":{"propagation.flotilla.io/wanted-again":"true"},"uid":"w-m1"}}`
	for name, tc := range map[string]struct {
		current []func(*workv1alpha1.Work)
		planned string
		refuses error
		want    []string
		fails   bool
	}{
		"it cannot go":                       {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, want: []string{patch}},
		"it goes in a moment":                {current: []func(*workv1alpha1.Work){leaving, raw(own)}},
		"it was told already":                {current: []func(*workv1alpha1.Work){leaving, waits, annotated, raw(own)}},
		"it is another binding's":            {current: []func(*workv1alpha1.Work){leaving, waits, of("another"), raw(own)}},
		"its object has another name by now": {current: []func(*workv1alpha1.Work){leaving, waits, raw(other)}},
		"the template is of another version": {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, planned: `{"apiVersion":"sea.example/v2","kind":"Boat","metadata":{"name":"a","namespace":"shop"}}`, want: []string{patch}},
		"what it holds cannot be read":       {current: []func(*workv1alpha1.Work){leaving, waits, raw("x")}},
		"it has gone meanwhile":              {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: apierrors.NewNotFound(resource, "x")},
		"the next one is there":              {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: apierrors.NewConflict(resource, "x", nil)},
		"the control plane does not take it": {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: errors.New("no room"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.planned == "" {
				tc.planned = own
			}
			hub, current := &patches{refuses: tc.refuses}, work("m1", tc.current...)
			p := writer{
				hub: hub, written: writecache.New[*workv1alpha1.Work](clocktesting.NewFakePassiveClock(time.Unix(0, 0))),
				find: func(context.Context, client.ObjectKey) (*workv1alpha1.Work, bool, error) { return current, true, nil },
			}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			s := &state{key: client.ObjectKeyFromObject(b), binding: b}
			out := p.bring(t.Context(), s, plan.WorkPlan{Cluster: "m1", Work: work("m1", raw(tc.planned))})
			if diff := cmp.Diff(tc.want, hub.got); diff != "" || out.stands || (out.err != nil) != tc.fails {
				t.Errorf("stands %t, error %v; patches (-want +got):\n%s", out.stands, out.err, diff)
			}
			for _, data := range hub.got {
				if !json.Valid([]byte(data)) {
					t.Errorf("no JSON: %s", data)
				}
			}
		})
	}
}
