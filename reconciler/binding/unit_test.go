package binding

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

func work(cluster string, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: "web-x", UID: types.UID("w-" + cluster), ResourceVersion: "5",
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNameAnnotationKey: "web-deployment"},
			Finalizers:  []string{workv1alpha2.ExecutionControllerFinalizer},
		},
		Spec: workv1alpha1.WorkSpec{
			SuspendDispatching: ptr.To(false),
			Workload:           workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"X","n":1}`)}}}},
		},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

func TestMerged(t *testing.T) {
	cases := map[string]struct {
		current, planned func(*workv1alpha1.Work)
		changed          bool
		check            func(*workv1alpha1.Work) bool
	}{
		"the same":                            {},
		"keys of a manifest in another order": {current: raw(`{"n": 1, "kind":"X"}`)},
		"another manifest":                    {planned: raw(`{"kind":"X","n":2}`), changed: true},
		"two manifests": {planned: func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, w.Spec.Workload.Manifests[0])
		}, changed: true},
		"dispatching is suspended": {planned: func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = ptr.To(true) }, changed: true},
		"somebody's label stays": {current: func(w *workv1alpha1.Work) { w.Labels["mine"] = "1" }, check: func(w *workv1alpha1.Work) bool {
			return w.Labels["mine"] == "1"
		}},
		"a label of ours was changed": {current: func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "b-0" }, changed: true},
		"another control plane gave it its id": {
			current: func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.WorkPermanentIDLabel] = "theirs" },
			planned: func(w *workv1alpha1.Work) { w.Labels[workv1alpha2.WorkPermanentIDLabel] = "ours" },
			check:   func(w *workv1alpha1.Work) bool { return w.Labels[workv1alpha2.WorkPermanentIDLabel] == "theirs" },
		},
		"no override applies any more": {
			current: func(w *workv1alpha1.Work) { w.Annotations[policyv1alpha1.AppliedOverrides] = "[]" }, changed: true,
			check: func(w *workv1alpha1.Work) bool { _, has := w.Annotations[policyv1alpha1.AppliedOverrides]; return !has },
		},
		"the finalizer was taken off": {current: func(w *workv1alpha1.Work) { w.Finalizers = nil }, changed: true, check: func(w *workv1alpha1.Work) bool {
			return len(w.Finalizers) == 1
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			current, planned := work("m1"), work("m1")
			if tc.current != nil {
				tc.current(current)
			}
			if tc.planned != nil {
				tc.planned(planned)
			}
			before := current.DeepCopy()
			got, changed := merged(current, planned)
			if changed != tc.changed {
				t.Errorf("changed = %v, want %v", changed, tc.changed)
			}
			if tc.check != nil && !tc.check(got) {
				t.Errorf("merged into %+v", got.ObjectMeta)
			}
			if diff := cmp.Diff(before, current); diff != "" {
				t.Errorf("the cached Work was changed:\n%s", diff)
			}
		})
	}
}

func raw(text string) func(*workv1alpha1.Work) {
	return func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = []byte(text) }
}

// writeRecorder is a hub that only records what is written, and fails for some clusters.
type writeRecorder struct {
	client.Client
	fails map[string]error
	wrote map[string]bool
}

func (l *writeRecorder) note(verb string, obj client.Object) error {
	cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(obj.GetNamespace())
	if err := l.fails[cluster]; err != nil {
		return err
	}
	l.wrote[verb+" "+cluster] = true
	return nil
}

func (l *writeRecorder) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return l.note("create", obj)
}

func (l *writeRecorder) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	return l.note("delete", obj)
}

func (l *writeRecorder) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return l.note("patch", obj)
}

func TestDispatchAndClean(t *testing.T) {
	on := func(clusters ...string) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{}
		for _, c := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		return b
	}
	evicting := func(mode policyv1alpha1.PurgeMode, from string, clusters ...string) *workv1alpha2.ResourceBinding {
		b := on(clusters...)
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from, PurgeMode: mode}}
		return b
	}
	pruned := func(from string, b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
		plan.SetPrunedFrom(b, []string{from})
		return b
	}
	planned := func(clusters ...string) []plan.WorkPlan {
		var out []plan.WorkPlan
		for _, c := range clusters {
			out = append(out, plan.WorkPlan{Cluster: c, Work: work(c)})
		}
		return out
	}
	refused := plan.WorkPlan{Cluster: "m2", Err: &override.Error{Policy: "shop/o", Path: "/spec/x", Err: errors.New("missing")}}
	rule := func(err error) plan.WorkPlan {
		return plan.WorkPlan{Cluster: "m2", Err: &interpreter.Error{Operation: "revise replicas", Kind: "X", Name: "x", Err: err}}
	}
	awaited := rule(&kinds.Pending{Of: "h", After: 20 * time.Millisecond})
	cases := map[string]struct {
		binding *workv1alpha2.ResourceBinding
		there   []string
		goes    []string // from there
		plans   []plan.WorkPlan
		fails   map[string]error
		want    map[string]bool
		class   loop.Class
		failed  bool
		after   time.Duration
	}{
		"it moves, the new manifest is on its way": {
			binding: on("m2"), there: []string{"m1"}, plans: []plan.WorkPlan{awaited}, after: 20 * time.Millisecond,
		},
		"one manifest is on its way, others are not": {
			binding: on("m1", "m2"), there: []string{"m3"}, plans: append(planned("m1"), awaited),
			want: map[string]bool{"create m1": true, "delete m3": true}, after: 20 * time.Millisecond,
		},
		"a rule about the kind fails": {
			binding: on("m1", "m2"), there: []string{"m2"}, plans: append(planned("m1"), rule(errors.New("nil"))),
			want: map[string]bool{"create m1": true, "patch m2": true}, class: loop.ClassWaiting, failed: true,
		},
		"a new binding": {binding: on("m1", "m2"), plans: planned("m1", "m2"), want: map[string]bool{"create m1": true, "create m2": true}},
		"nothing to do": {binding: on("m1"), there: []string{"m1"}, plans: planned("m1")},
		"it moves":      {binding: on("m2"), there: []string{"m1"}, plans: planned("m2"), want: map[string]bool{"create m2": true, "delete m1": true}},
		"it moves, the new one cannot be written":  {binding: on("m2"), there: []string{"m1"}, plans: planned("m2"), fails: map[string]error{"m2": errors.New("refused")}, class: loop.ClassRetry, failed: true},
		"it moves, the new one cannot be rendered": {binding: on("m2"), there: []string{"m1"}, plans: []plan.WorkPlan{refused}, class: loop.ClassStalled, failed: true},
		"it shrinks, another cannot be rendered": {
			binding: on("m1", "m2"), there: []string{"m1", "m3"}, plans: append(planned("m1"), refused),
			want: map[string]bool{"delete m3": true}, class: loop.ClassStalled, failed: true,
		},
		"one cluster's fault stops no other": {
			binding: on("m1", "m2"), plans: planned("m1", "m2"), fails: map[string]error{"m1": errors.New("refused")},
			want: map[string]bool{"create m2": true}, class: loop.ClassRetry, failed: true,
		},
		"a fault that may pass comes before one that needs a person": {
			binding: on("m1", "m2"), plans: append(planned("m1"), refused), fails: map[string]error{"m1": errors.New("refused")},
			class: loop.ClassRetry, failed: true,
		},
		"it is pruned from a cluster before the others": {binding: pruned("m1", on("m1", "m2")), there: []string{"m1", "m2"}, plans: planned("m2"), want: map[string]bool{"delete m1": true}},
		"it is pruned from all":                         {binding: pruned("m1", on("m1")), there: []string{"m1"}, want: map[string]bool{"delete m1": true}},
		"it is to run nowhere":                          {binding: on(), there: []string{"m1"}, want: map[string]bool{"delete m1": true}},
		"a cluster is left gracefully":                  {binding: evicting(policyv1alpha1.PurgeModeGracefully, "m1", "m2"), there: []string{"m1"}, plans: planned("m2"), want: map[string]bool{"create m2": true}},
		"a cluster is left first":                       {binding: evicting(policyv1alpha1.PurgeModeDirectly, "m1", "m2"), there: []string{"m1"}, plans: planned("m2"), want: map[string]bool{"patch m1": true, "delete m1": true}, after: 30 * time.Second},
		"a cluster is left first, others run it already": {
			binding: evicting(policyv1alpha1.PurgeModeDirectly, "m1", "m2", "m3"), there: []string{"m1", "m2"}, plans: []plan.WorkPlan{{Cluster: "m2", Work: work("m2", raw(`{"kind":"X","n":2}`))}, planned("m3")[0]},
			want: map[string]bool{"patch m1": true, "delete m1": true, "patch m2": true}, after: 30 * time.Second,
		},
		"a cluster is left first, for one that was left before": {
			binding: evicting(policyv1alpha1.PurgeModeDirectly, "m1", "m2"), there: []string{"m1"}, goes: []string{"m2"}, plans: planned("m2"),
			want: map[string]bool{"patch m1": true, "delete m1": true}, after: 30 * time.Second,
		},
		"a cluster that is not known": {binding: on("m1"), plans: []plan.WorkPlan{{Cluster: "m1", Err: fmt.Errorf("m1: %w", plan.ErrUnknownCluster)}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := &writeRecorder{fails: tc.fails, wrote: map[string]bool{}}
			s := state{binding: tc.binding, plans: tc.plans}
			for _, c := range tc.there {
				s.works = append(s.works, work(c))
			}
			for _, c := range tc.goes {
				s.works = append(s.works, work(c, func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(0, 0)} }))
			}
			clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
			written := writecache.New[*workv1alpha1.Work](clock)
			p := writer{
				hub:      hub,
				claims:   releaser{hub: hub, written: written, clock: clock},
				recalls:  undelete.Recaller{Leaving: nothingLeaves},
				parallel: 1,
				cluster: func(context.Context, string) (*clusterv1alpha1.Cluster, bool, error) {
					return &clusterv1alpha1.Cluster{}, true, nil // without conditions, it counts as reachable
				},
				written: written,
				clock:   clock,
				find: func(_ context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error) {
					for _, w := range s.works {
						if client.ObjectKeyFromObject(w) == key {
							return w, true, nil
						}
					}
					return nil, false, nil
				},
			}
			next, err := loop.Run(t.Context(), &s, p.pruneClusters, p.dispatch, p.deleteStaleWorks)
			if next.After != tc.after {
				t.Errorf("looks again after %s, want %s", next.After, tc.after)
			}
			if tc.want == nil {
				tc.want = map[string]bool{}
			}
			if diff := cmp.Diff(tc.want, hub.wrote); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			e := loop.As(err, "")
			if (e != nil) != tc.failed || (e != nil && e.Class != tc.class) {
				t.Errorf("error = %v, want class %v", err, tc.class)
			}
		})
	}
}

func TestTouches(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
	}}}
	of := func(namespace string, selectors ...policyv1alpha1.ResourceSelector) policyv1alpha1.Override {
		if namespace == "" {
			return &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: selectors}}
		}
		return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}, Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: selectors}}
	}
	selects := func(kind, name string, labels map[string]string) policyv1alpha1.ResourceSelector {
		s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: kind, Name: name}
		if labels != nil {
			s.LabelSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		return s
	}
	cases := map[string]struct {
		overrides []policyv1alpha1.Override
		unknown   bool // the template cannot be read
		want      bool
	}{
		"all of its namespace":              {overrides: []policyv1alpha1.Override{of("shop")}, want: true},
		"all of another namespace":          {overrides: []policyv1alpha1.Override{of("other")}},
		"all there are":                     {overrides: []policyv1alpha1.Override{of("")}, want: true},
		"its name":                          {overrides: []policyv1alpha1.Override{of("", selects("Deployment", "web", nil))}, want: true},
		"another name":                      {overrides: []policyv1alpha1.Override{of("", selects("Deployment", "api", nil))}},
		"another kind":                      {overrides: []policyv1alpha1.Override{of("shop", selects("StatefulSet", "", nil))}},
		"its labels":                        {overrides: []policyv1alpha1.Override{of("shop", selects("Deployment", "", map[string]string{"app": "web"}))}, want: true},
		"other labels":                      {overrides: []policyv1alpha1.Override{of("shop", selects("Deployment", "", map[string]string{"app": "api"}))}},
		"labels of a template not known":    {overrides: []policyv1alpha1.Override{of("shop", selects("Deployment", "", map[string]string{"app": "api"}))}, unknown: true, want: true},
		"what an old version of it selects": {overrides: []policyv1alpha1.Override{of("shop", selects("Deployment", "web", nil)), of("shop", selects("Deployment", "api", nil))}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := func(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
				if tc.unknown {
					return nil, templatestore.Unknown, nil
				}
				obj := &unstructured.Unstructured{}
				obj.SetLabels(map[string]string{"app": "web"})
				return obj, templatestore.Present, nil
			}
			if got := touches(t.Context(), read, b, tc.overrides...); got != tc.want {
				t.Errorf("touches = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestOrphans: Works whose binding the cache does not have are deleted only once the
// control plane does not have it either.
func TestOrphans(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	none := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	some := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(b).Build()
	cases := map[string]struct {
		live  client.Reader
		works []*workv1alpha1.Work
		done  bool
	}{
		"gone":                       {live: none, works: []*workv1alpha1.Work{work("m1")}},
		"not seen here yet":          {live: some, works: []*workv1alpha1.Work{work("m1")}, done: true},
		"gone, and nobody misses it": {done: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := reader{hub: none, gone: func(client.ObjectKey) {}, live: tc.live, orphans: func(context.Context, client.ObjectKey) ([]*workv1alpha1.Work, error) { return tc.works, nil }}
			s := state{key: client.ObjectKeyFromObject(b)}
			next, err := p.readBinding(t.Context(), &s)
			if err != nil || next.Done != tc.done || len(s.works) != len(tc.works) {
				t.Errorf("done %v with %d Works, err %v; want done %v", next.Done, len(s.works), err, tc.done)
			}
		})
	}
}

func TestReadTemplate(t *testing.T) {
	digested := func(version, digest string) *workv1alpha2.ResourceBinding {
		return &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"propagation.flotilla.io/template-digest": digest}},
			Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{UID: "t-1", ResourceVersion: version}},
		}
	}
	cases := map[string]struct {
		binding   *workv1alpha2.ResourceBinding
		presence  templatestore.Presence
		version   string
		uid       types.UID
		unchanged bool
		goesOn    bool
		waits     bool
		held      bool
	}{
		"as the binding says":                  {binding: digested("7", ""), presence: templatestore.Present, version: "7", uid: "t-1", goesOn: true},
		"newer, and nobody noted its content":  {binding: digested("7", ""), presence: templatestore.Present, version: "9", uid: "t-1", goesOn: true},
		"newer, with content not decided upon": {binding: digested("7", "other"), presence: templatestore.Present, version: "9", uid: "t-1", goesOn: true, held: true},
		"newer, with nothing to decide":        {binding: digested("7", "other"), presence: templatestore.Present, version: "9", uid: "t-1", unchanged: true, goesOn: true},
		"older, with nothing to decide":        {binding: digested("7", "other"), presence: templatestore.Present, version: "6", uid: "t-1", unchanged: true, waits: true},
		"made anew, with nothing to decide":    {binding: digested("7", "other"), presence: templatestore.Present, version: "9", uid: "t-2", unchanged: true},
		"the cache lags":                       {binding: digested("7", ""), presence: templatestore.Present, version: "6", uid: "t-1", waits: true},
		"made anew":                            {binding: digested("7", ""), presence: templatestore.Present, version: "9", uid: "t-2"},
		"gone":                                 {binding: digested("7", ""), presence: templatestore.Absent},
		"not known":                            {binding: digested("7", ""), presence: templatestore.Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := reader{templates: func(context.Context, templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
				if tc.presence != templatestore.Present {
					return nil, tc.presence, nil
				}
				obj := &unstructured.Unstructured{}
				obj.SetResourceVersion(tc.version)
				obj.SetUID(tc.uid)
				return obj, templatestore.Present, nil
			}, unchanged: func(context.Context, *unstructured.Unstructured, workv1alpha2.Binding) bool { return tc.unchanged }}
			s := state{binding: tc.binding}
			next, err := p.readTemplate(t.Context(), &s)
			e := loop.As(err, "")
			got := []bool{!next.Done && err == nil, e != nil && e.Class == loop.ClassWaiting, s.held}
			if diff := cmp.Diff([]bool{tc.goesOn, tc.waits, tc.held}, got); diff != "" {
				t.Errorf("goes on, waits, is held (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWorkOfANamespaceWhoseNameHashesAlike: it belongs to another binding, and is neither changed
// nor taken for the binding's own.
func TestAWorkOfANamespaceWhoseNameHashesAlike(t *testing.T) {
	if a, b := workv1alpha2.WorkName("Deployment", "api", "victim"), workv1alpha2.WorkName("Deployment", "api", "team-4bcs3w"); a != b {
		t.Fatalf("the names are %s and %s: others hash alike by now", a, b)
	}
	own := client.ObjectKey{Namespace: "victim", Name: "api-deployment"}
	for name, tc := range map[string]struct {
		namespace string
		want      bool
	}{"its own": {"victim", false}, "that of the other": {"team-4bcs3w", true}, "one that nobody made": {"", false}} {
		t.Run(name, func(t *testing.T) {
			w := work("east", func(w *workv1alpha1.Work) {
				w.Annotations = map[string]string{
					workv1alpha2.ResourceBindingNamespaceAnnotationKey: tc.namespace, workv1alpha2.ResourceBindingNameAnnotationKey: "api-deployment",
				}
			})
			if got := anothers(own, w); got != tc.want {
				t.Errorf("anothers = %t", got)
			}
		})
	}
}
