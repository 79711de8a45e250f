package draining_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/draining"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// drained is a cluster that is well and drained.
func drained() *clusterv1alpha1.Cluster {
	east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{Taints: drain.Taints()}}
	east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	return east
}

// placed is a template in east that a policy carries.
func placed(apiVersion, kind, name string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: workv1alpha2.BindingName(kind, name), Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name}
	decided(b, "east", placement.Record{Reason: workv1alpha2.BindingReasonSuccess})
	return b
}

func decided(b *workv1alpha2.ResourceBinding, in string, record placement.Record) {
	p := &policyv1alpha1.Placement{}
	b.Spec.Placement = p
	placement.Decision{Clusters: []workv1alpha2.TargetCluster{{Name: in}}, AppliedPlacement: placement.AppliedPlacement(p), Record: record}.Put(b)
}

// TestEachEndingCounts: whatever becomes of templates, a drain has one row for each until its end, and is over once
// nothing is on its way.
func TestEachEndingCounts(t *testing.T) {
	job := placed("batch/v1", "Job", "import")
	job.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Failed","status":"True"}]}`)}}}
	old, stuck, web, theirs := placed("apps/v1", "Deployment", "old"), placed("apps/v1", "Deployment", "stuck"), placed("apps/v1", "Deployment", "web"), placed("apps/v1", "Deployment", "theirs")
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(drained(), job, old, stuck, web, theirs).Build()
	var out, errOut strings.Builder
	w := draining.Watch{Hub: hub, Cluster: "east", Clock: steps{clocktesting.NewFakeClock(time.Unix(0, 0))}, Out: &out, ErrOut: &errOut}
	if err := w.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	decided(stuck, "east", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Stays: &unplaced.Stays{
		Message: "It stays in east (untolerated taint {cluster.flotilla.io/drain:NoExecute}): no other place: no room.", Clusters: []string{"east"},
	}})
	decided(web, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
	decided(theirs, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess}) // as another scheduler has it, which notes nothing
	for _, b := range []*workv1alpha2.ResourceBinding{stuck, web, theirs} {
		if err := hub.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := hub.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	rows, err := w.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const record = "it has finished there (Failed), and stays as a record"
	want := "Job shop/import stays in east: " + record + "\n" +
		"Deployment shop/old is gone: it was deleted\n" +
		"Deployment shop/stuck stays in east: refused: no other place: no room\n" +
		"Deployment shop/theirs left east for west\n" +
		"Deployment shop/web left east for west\n"
	if diff := cmp.Diff(want, out.String()); diff != "" || errOut.String() != "" {
		t.Errorf("it says %q, and (-want +got):\n%s", errOut.String(), diff)
	}
	if diff := cmp.Diff(drain.Totals{Total: 5, Left: 2, Gone: 1, Finished: 1, Refused: 1}, drain.Count(rows)); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
	const verdict = "1 of 5 stays in east (2 left, 1 deleted, 1 finished there): Deployment shop/stuck: refused: no other place: no room: make room for it, or give its policy another cluster; " +
		"what each says: flotilla explain deployment/stuck -n shop. What finds a place later still goes; flotilla uncordon east ends the drain"
	report := draining.Report{Cluster: "east", Rows: rows}
	if got := report.Verdict(); got == nil || got.Error() != verdict {
		t.Errorf("verdict %v\nwant    %s", got, verdict)
	}
	report.Rows = rows[:1]
	var done strings.Builder
	if err := report.Verdict(); err != nil {
		t.Errorf("what has finished stays as a fault: %v", err)
	}
	if err := report.Done(&done); err != nil || done.String() != "cluster/east drained (1 finished there); flotilla uncordon east --return has what was moved placed anew\n" {
		t.Errorf("%q, %v", done.String(), err)
	}
}

// set is a StatefulSet that makes claims.
func set(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "shop", "name": name},
		"spec": map[string]any{"volumeClaimTemplates": []any{map[string]any{"metadata": map[string]any{"name": "data"}}}},
	}}
}

// TestVolumesStayBehind: a plan and a drain say what becomes of data, once, or that it is not known.
func TestVolumesStayBehind(t *testing.T) {
	const data = "it takes no data along: the PersistentVolumeClaims data-db-* stay in east, and elsewhere it goes on with those that are there, else with empty ones"
	const again = "it takes no data along: the PersistentVolumeClaims data-db-* stay in east; west still has data-db-0, and it goes on with that, without what was written in east since"
	for name, tc := range map[string]struct {
		more               int // StatefulSets besides
		denied             bool
		there              []types.NamespacedName // claims that west is known to have
		data, note, errOut string
	}{
		"one is read":        {data: data, errOut: "warning: StatefulSet shop/db leaves east for west: " + data + "\n"},
		"many are":           {more: 20, data: data, errOut: "warning: StatefulSet shop/db leaves east for west: " + data + "\n"},
		"west has one still": {there: []types.NamespacedName{{Namespace: "shop", Name: "data-db-0"}}, data: again, errOut: "warning: StatefulSet shop/db leaves east for west: " + again + "\n"},
		"it may not be read": {denied: true, note: `which volumes stay behind is not known for the kind StatefulSet: statefulsets.apps is forbidden: <nil>`,
			errOut: "note: which volumes stay behind is not known for the kind StatefulSet: statefulsets.apps is forbidden: <nil>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			west := drained()
			west.Name, west.Spec.Taints = "west", nil
			west.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "statefulsets", Kind: "StatefulSet"}}}}
			if len(tc.there) > 0 {
				west.Status.Conditions = append(west.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionClaimsKept, Status: metav1.ConditionTrue, Message: volumes.Staying(tc.there)})
			}
			b := placed("apps/v1", "StatefulSet", "db")
			objects := []client.Object{drained(), west, b, set("db")}
			for i := range tc.more {
				other := placed("apps/v1", "StatefulSet", "db-"+string(rune('a'+i)))
				objects = append(objects, other, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": map[string]any{"namespace": "shop", "name": other.Spec.Resource.Name}}})
			}
			refuse := func(obj runtime.Object) error {
				if tc.denied && strings.HasPrefix(obj.GetObjectKind().GroupVersionKind().Kind, "StatefulSet") {
					return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "", nil)
				}
				return nil
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, hub client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if err := refuse(obj); err != nil {
						return err
					}
					return hub.Get(ctx, key, obj, opts...)
				},
				List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if err := refuse(list); err != nil {
						return err
					}
					return hub.List(ctx, list, opts...)
				},
			}).Build()
			report, err := draining.Plan(t.Context(), hub, nil, "east", time.Unix(0, 0))
			if err != nil {
				t.Fatal(err)
			}
			if row := report.Rows[0]; row.Name != "db" || row.State != drain.Leaves || row.Data != tc.data {
				t.Errorf("planned: %+v", row)
			}
			if tc.note != "" && (len(report.Notes) != 1 || report.Notes[0] != tc.note) {
				t.Errorf("notes %q, want %q", report.Notes, tc.note)
			}
			var out, errOut strings.Builder
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			w := draining.Watch{Hub: hub, Cluster: "east", Clock: leaving{steps{clock}, func() {
				decided(b, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
				_ = hub.Update(t.Context(), b)
			}}, Out: &out, ErrOut: &errOut, Timeout: time.Minute}
			if err := w.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			decided(b, "west", placement.Record{Reason: workv1alpha2.BindingReasonSuccess, Drained: []string{"east"}})
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "east", Producer: workv1alpha2.EvictionProducerDrain}}
			if err := hub.Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for i := range objects {
				if other, is := objects[i].(*workv1alpha2.ResourceBinding); is && other != b {
					if err := hub.Delete(t.Context(), other); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if line := "StatefulSet shop/db left east for west\n"; !strings.HasSuffix(out.String(), line) || errOut.String() != tc.errOut {
				t.Errorf("output %q, %q; want %q, %q", out.String(), errOut.String(), line, tc.errOut)
			}
		})
	}
}

// leaving is a clock on which something happens while somebody waits.
type leaving struct {
	steps
	happens func()
}

func (l leaving) After(d time.Duration) <-chan time.Time {
	l.happens()
	return l.steps.After(d)
}
