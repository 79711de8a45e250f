package remedy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/flotilla-io/flotilla/api/remedy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

func clusterOf(name string, resolution metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c-1"}}
	c.Status.KubernetesVersion = "v1.36.4"
	c.Status.Conditions = []metav1.Condition{{Type: "Resolution", Status: resolution}}
	return c
}

// block takes traffic away from clusters while Resolution is False.
func block(clusters ...string) *remedyv1alpha1.Remedy {
	r := &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "block", Generation: 1}}
	if len(clusters) > 0 {
		r.Spec.ClusterAffinity = &remedyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	r.Spec.DecisionMatches = []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
		ConditionType: "Resolution", Operator: remedyv1alpha1.ClusterConditionEqual, ConditionStatus: "False",
	}}}
	r.Spec.Actions = []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl}
	return r
}

// plane is a hub with the loop, which keeps what is written.
type plane struct {
	*testing.T
	client.Client
	loop   *Reconciler
	writes []string
	refuse error // what writes of a status are answered with
}

func planeOf(t *testing.T, objects ...client.Object) *plane {
	t.Helper()
	p := &plane{T: t}
	p.Client = fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if p.refuse != nil {
					return p.refuse
				}
				data, err := patch.Data(obj)
				if err != nil {
					return err
				}
				p.writes = append(p.writes, string(data))
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	p.loop = New(p.Client)
	return p
}

func (p *plane) reconcile() (reconcile.Result, error) {
	return p.loop.Reconcile(p.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "eu-1"}})
}

func (p *plane) mustReconcile() {
	p.Helper()
	if result, err := p.reconcile(); err != nil || !result.IsZero() {
		p.Fatalf("another look: %v, error: %v", result, err)
	}
}

func (p *plane) want(what string, want, got []string) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestActionsFollowRemedies(t *testing.T) {
	p := planeOf(t, clusterOf("eu-1", metav1.ConditionFalse), block())
	p.mustReconcile()
	p.mustReconcile()
	writes := []string{`{"metadata":{"resourceVersion":"999"},"status":{"remedyActions":["TrafficControl"]}}`}
	p.want("writes", writes, p.writes)

	more := block("eu-1")
	more.Name, more.Spec.Actions = "more", []remedyv1alpha1.RemedyAction{"Page", "TrafficControl"}
	if err := p.Create(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	p.mustReconcile()
	for _, remedy := range []client.Object{more, block()} {
		if err := p.Delete(t.Context(), remedy); err != nil {
			t.Fatal(err)
		}
	}
	p.mustReconcile()
	p.mustReconcile()
	writes = append(writes,
		`{"metadata":{"resourceVersion":"1000"},"status":{"remedyActions":["Page","TrafficControl"]}}`,
		`{"metadata":{"resourceVersion":"1001"},"status":{"remedyActions":null}}`)
	p.want("writes", writes, p.writes)

	got := &clusterv1alpha1.Cluster{}
	if err := p.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(clusterOf("eu-1", metav1.ConditionFalse).Status, got.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestClustersThatAreLeftAlone(t *testing.T) {
	leaving := clusterOf("eu-1", metav1.ConditionFalse)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{clusterv1alpha1.ClusterControllerFinalizer}, &metav1.Time{Time: metav1.Now().Time}
	for name, objects := range map[string][]client.Object{
		"one that is gone":              {block()},
		"one that is being deleted":     {leaving, block()},
		"one that no remedy applies to": {clusterOf("eu-1", metav1.ConditionTrue), block()},
		"one that remedies do not name": {clusterOf("eu-1", metav1.ConditionFalse), block("us-1")},
	} {
		t.Run(name, func(t *testing.T) {
			p := planeOf(t, objects...)
			p.mustReconcile()
			p.want("writes", nil, p.writes)
		})
	}
}

func TestWritesThatFail(t *testing.T) {
	kind := schema.GroupResource{Group: "cluster.karmada.io", Resource: "clusters"}
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		refuse, wantErr error
		want            reconcile.Result
	}{
		"what somebody changed meanwhile is looked at again": {refuse: apierrors.NewConflict(kind, "eu-1", boom), want: reconcile.Result{RequeueAfter: stale}},
		"about a cluster that is gone nothing is to be done": {refuse: apierrors.NewNotFound(kind, "eu-1")},
		"a fault is tried again":                             {refuse: boom, wantErr: boom},
	} {
		t.Run(name, func(t *testing.T) {
			p := planeOf(t, clusterOf("eu-1", metav1.ConditionFalse), block())
			p.refuse = tc.refuse
			result, err := p.reconcile()
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsLookedAt(t *testing.T) {
	update := func(edit func(*clusterv1alpha1.Cluster)) bool {
		is := clusterOf("eu-1", metav1.ConditionTrue)
		edit(is)
		return clusterChanges().Update(event.UpdateEvent{ObjectOld: clusterOf("eu-1", metav1.ConditionTrue), ObjectNew: is})
	}
	next := block()
	next.Generation = 2
	for name, tc := range map[string]struct{ got, want bool }{
		"a new cluster":                    {clusterChanges().Create(event.CreateEvent{Object: clusterOf("eu-1", metav1.ConditionTrue)}), true},
		"a cluster that is gone":           {clusterChanges().Delete(event.DeleteEvent{Object: clusterOf("eu-1", metav1.ConditionTrue)}), false},
		"another status of a condition":    {update(func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }), true},
		"another message of a condition":   {update(func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Message = "well" }), false},
		"actions that somebody else wrote": {update(func(c *clusterv1alpha1.Cluster) { c.Status.RemedyActions = []string{"Page"} }), true},
		"the rest of a status":             {update(func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1.37.0" }), false},
		"another cluster of that name":     {update(func(c *clusterv1alpha1.Cluster) { c.UID = "c-2" }), true},
		"a new remedy":                     {remedyChanges().Create(event.CreateEvent{Object: next}), true},
		"a remedy that a start finds":      {remedyChanges().Create(event.CreateEvent{Object: next, IsInInitialList: true}), false},
		"another spec of a remedy":         {remedyChanges().Update(event.UpdateEvent{ObjectOld: block(), ObjectNew: next}), true},
		"another label of a remedy":        {remedyChanges().Update(event.UpdateEvent{ObjectOld: next, ObjectNew: next}), false},
		"the end of a remedy":              {remedyChanges().Delete(event.DeleteEvent{Object: next}), true},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %t, want %t", name, tc.got, tc.want)
		}
	}
}

func TestConcerned(t *testing.T) {
	p := planeOf(t, clusterOf("eu-1", metav1.ConditionTrue), clusterOf("eu-2", metav1.ConditionTrue))
	for name, tc := range map[string]struct {
		remedy *remedyv1alpha1.Remedy
		want   []string
	}{
		"one of all clusters":       {block(), []string{"/eu-1", "/eu-2"}},
		"one that names clusters":   {block("eu-2", "us-1"), []string{"/eu-2"}},
		"one of clusters not there": {block("us-1"), nil},
	} {
		var names []string
		for _, request := range p.loop.concerned(t.Context(), tc.remedy) {
			names = append(names, request.String())
		}
		p.want(name, tc.want, names)
	}
}
