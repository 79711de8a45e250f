package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
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
	if patch.Type() == types.JSONPatchType { // the only one is that without the finalizer
		obj.SetFinalizers(nil)
	}
	return err
}

func (p *patches) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	p.got = append(p.got, "create "+obj.GetName())
	return nil
}

func nothingLeaves(context.Context, client.ObjectKey) ([]*workv1alpha1.Work, error) { return nil, nil }

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
	const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"shop"},"spec":{"replicas":1}}`
	away := func(status metav1.ConditionStatus) *clusterv1alpha1.Cluster {
		out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
		out.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: "x"}}
		return out
	}
	maybe := func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.WantedAgainAnnotation] = "undecided" }
	named := func(w *workv1alpha1.Work) { w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey] = "shop" }
	released := func(w *workv1alpha1.Work) {
		w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkWantedAgainReason}}
		w.Finalizers = []string{workv1alpha2.ExecutionControllerFinalizer}
	}
	const ends = `[{"op":"test","path":"/metadata/finalizers/0","value":"karmada.io/execution-controller"},{"op":"remove","path":"/metadata/finalizers/0"}]`
	for name, tc := range map[string]struct {
		current []func(*workv1alpha1.Work)
		planned string
		cluster *clusterv1alpha1.Cluster
		after   time.Duration
		refuses error
		want    []string
		stands  bool
		fails   bool
	}{
		"it cannot go":                              {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, want: []string{patch}},
		"it goes in a moment":                       {current: []func(*workv1alpha1.Work){leaving, raw(own)}},
		"its cluster is away":                       {current: []func(*workv1alpha1.Work){leaving, named, raw(deployment)}, planned: strings.Replace(deployment, ":1", ":2", 1), cluster: away(metav1.ConditionUnknown), want: []string{patch}},
		"its cluster is there":                      {current: []func(*workv1alpha1.Work){leaving, named, raw(deployment)}, planned: deployment, cluster: away(metav1.ConditionTrue), after: 2 * time.Second},
		"its cluster is back, and it was undecided": {current: []func(*workv1alpha1.Work){leaving, named, maybe, raw(deployment)}, planned: deployment, cluster: away(metav1.ConditionTrue), want: []string{patch}},
		"it was undecided, and is to be another one": {current: []func(*workv1alpha1.Work){leaving, named, maybe, raw(deployment)},
			planned: strings.Replace(deployment, `"replicas":1`, `"selector":{"a":"b"}`, 1), cluster: away(metav1.ConditionTrue), want: []string{strings.Replace(patch, `"true"`, "null", 1)}},
		"its cluster is away, and it is to be another one": {current: []func(*workv1alpha1.Work){leaving, named, raw(deployment)},
			planned: strings.Replace(deployment, `"replicas":1`, `"selector":{"a":"b"}`, 1), cluster: away(metav1.ConditionUnknown)},
		"it was told already":                                    {current: []func(*workv1alpha1.Work){leaving, waits, annotated, raw(own)}},
		"its cluster has let go of it":                           {current: []func(*workv1alpha1.Work){leaving, released, annotated, raw(own)}, want: []string{ends, "create web-x"}, stands: true},
		"its cluster has let go of what has another name by now": {current: []func(*workv1alpha1.Work){leaving, released, annotated, raw(other)}, want: []string{strings.Replace(patch, `"true"`, "null", 1)}},
		"its cluster let go of what goes after all":              {current: []func(*workv1alpha1.Work){leaving, released, raw(own)}},
		"its cluster has let go, and it has gone meanwhile":      {current: []func(*workv1alpha1.Work){leaving, released, annotated, raw(own)}, refuses: apierrors.NewNotFound(resource, "x")},
		"it is another binding's":                                {current: []func(*workv1alpha1.Work){leaving, waits, of("another"), raw(own)}},
		"its object has another name by now":                     {current: []func(*workv1alpha1.Work){leaving, waits, raw(other)}},
		"the template is of another version":                     {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, planned: `{"apiVersion":"sea.example/v2","kind":"Boat","metadata":{"name":"a","namespace":"shop"}}`, want: []string{patch}},
		"what it holds cannot be read":                           {current: []func(*workv1alpha1.Work){leaving, waits, raw("x")}},
		"it has gone meanwhile":                                  {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: apierrors.NewNotFound(resource, "x")},
		"the next one is there":                                  {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: apierrors.NewConflict(resource, "x", nil)},
		"the control plane does not take it":                     {current: []func(*workv1alpha1.Work){leaving, waits, raw(own)}, refuses: errors.New("no room"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.planned == "" {
				tc.planned = own
			}
			hub, current := &patches{refuses: tc.refuses}, work("m1", tc.current...)
			now := clocktesting.NewFakePassiveClock(time.Unix(9, 0))
			written := writecache.New[*workv1alpha1.Work](now)
			p := writer{
				hub: hub, written: written, recalls: undelete.Recaller{Hub: hub, Written: written, Clock: now, Cluster: func(context.Context, string) (*clusterv1alpha1.Cluster, bool, error) {
					return tc.cluster, tc.cluster != nil, nil
				}},
				find: func(context.Context, client.ObjectKey) (*workv1alpha1.Work, bool, error) { return current, true, nil },
			}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
			s := &state{key: client.ObjectKeyFromObject(b), binding: b}
			out := p.bring(t.Context(), s, plan.WorkPlan{Cluster: "m1", Work: work("m1", raw(tc.planned))})
			if diff := cmp.Diff(tc.want, hub.got); diff != "" || out.stands != tc.stands || (out.err != nil) != tc.fails || tc.after != 0 && tc.after != out.after {
				t.Errorf("stands %t, error %v, again after %s; patches (-want +got):\n%s", out.stands, out.err, out.after, diff)
			}
			for _, data := range hub.got {
				if !json.Valid([]byte(data)) && !strings.HasPrefix(data, "create ") {
					t.Errorf("no JSON: %s", data)
				}
			}
		})
	}
}

// TestWhatHasNoSuccessorYet: what a former binding left in a cluster that is away is kept for as long as that may be placed in again, and
// goes once it is not. Whatever else is being deleted goes.
func TestWhatHasNoSuccessorYet(t *testing.T) {
	now := time.Unix(1000, 0)
	leaving := func(id, value string) *workv1alpha1.Work {
		return work("m1", func(w *workv1alpha1.Work) {
			w.DeletionTimestamp = &metav1.Time{Time: now.Add(-20 * time.Second)}
			w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = id
			if value != "" {
				w.Annotations[workv1alpha2.WantedAgainAnnotation] = value
			}
		})
	}
	const patch = `{"metadata":{"annotations":{"propagation.flotilla.io/wanted-again":%s},"uid":"w-m1"}}`
	const former, own = "b-0", "b-1"
	var keeps, goes = []string{fmt.Sprintf(patch, `"undecided"`)}, []string{fmt.Sprintf(patch, "null")}
	for name, tc := range map[string]struct {
		work    *workv1alpha1.Work
		binding string
		ready   metav1.ConditionStatus
		since   time.Duration
		keeps   []string
		want    []string
		after   time.Duration
	}{
		"a former binding's, in a cluster that is away": {work: leaving(former, ""), binding: own, ready: metav1.ConditionUnknown, want: keeps, after: 5 * time.Second},
		"that is known": {work: leaving(former, "undecided"), binding: own, ready: metav1.ConditionUnknown, after: 5 * time.Second},
		"the cluster is back, and may be placed in again":  {work: leaving(former, "undecided"), binding: own, ready: metav1.ConditionTrue, since: 5 * time.Second, after: 5 * time.Second},
		"the cluster is back, and is not":                  {work: leaving(former, "undecided"), binding: own, ready: metav1.ConditionTrue, since: time.Minute, want: goes, after: 5 * time.Second},
		"it was wanted, and has left the cluster":          {work: leaving(former, "true"), binding: own, ready: metav1.ConditionTrue, since: time.Minute, want: goes, after: 5 * time.Second},
		"it was wanted, and the binding is gone":           {work: leaving(former, "true"), ready: metav1.ConditionUnknown, want: goes},
		"the binding itself has left the cluster":          {work: leaving(own, ""), binding: own, ready: metav1.ConditionUnknown},
		"the cluster is there":                             {work: leaving(former, ""), binding: own, ready: metav1.ConditionTrue, since: time.Second, after: 5 * time.Second},
		"another Work waits for its end there, as it does": {work: leaving(former, "true"), binding: own, ready: metav1.ConditionUnknown, keeps: []string{"m1"}},
	} {
		hub, clock := &patches{}, clocktesting.NewFakePassiveClock(now)
		r := undelete.Recaller{Hub: hub, Clock: clock, Written: writecache.New[*workv1alpha1.Work](clock),
			Leaving: func(context.Context, client.ObjectKey) ([]*workv1alpha1.Work, error) {
				return []*workv1alpha1.Work{tc.work}, nil
			},
			Cluster: func(context.Context, string) (*clusterv1alpha1.Cluster, bool, error) {
				c := &clusterv1alpha1.Cluster{}
				c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: tc.ready, LastTransitionTime: metav1.NewTime(now.Add(-tc.since))}}
				return c, true, nil
			}}
		after, err := r.Decide(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, tc.binding, tc.keeps...)
		if diff := cmp.Diff(tc.want, hub.got); diff != "" || err != nil || after != tc.after {
			t.Errorf("%s: error %v; again after %s, want %s; patches (-want +got):\n%s", name, err, after, tc.after, diff)
		}
	}
}
