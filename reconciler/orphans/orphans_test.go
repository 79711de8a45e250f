package orphans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/fleettest"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/execution"
	"github.com/flotilla-io/flotilla/reconciler/namespace"
	"github.com/flotilla-io/flotilla/reconciler/orphans"
)

// hubs and edges lend the tests of this package control planes and members.
var (
	hubs  servertest.Pool
	edges membertest.Pool
)

func TestMain(m *testing.M) { os.Exit(hubs.Main(m, &edges)) }

// reported keeps the reasons of Events.
type reported struct {
	mu      sync.Mutex
	reasons map[string]int
}

func (e *reported) Event(_ runtime.Object, _, reason, _ string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reasons[reason]++
}

func (e *reported) count(reason string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reasons[reason]
}

// fleet is a control plane with a member, and loops that can be stopped.
type fleet struct {
	*testing.T
	hub    *servertest.Env
	edge   client.Client
	events *reported
	hold   atomic.Pointer[hubclaim.Hold]
	wake   func()
	stop   func() error
}

func (f *fleet) start() {
	f.stop = f.hub.StartLoops(f, func(ctx context.Context, mgr ctrl.Manager) error {
		native := interpreter.Native()
		registry := members.New(members.Options{Interpreter: native})
		hub, live := mgr.GetClient(), mgr.GetAPIReader()
		finder := orphans.New(hub, live, registry, f.events, orphans.Options{Grace: 200 * time.Millisecond, Hold: func(string) *hubclaim.Hold { return f.hold.Load() }, Metrics: metrics.Registry})
		f.wake = finder.Wake
		for _, l := range []interface{ Register(ctrl.Manager) error }{
			cluster.New(hub, live, registry, f.events, cluster.Options{Period: time.Second}),
			execution.New(hub, registry, native, f.events, execution.Options{}),
			finder,
		} {
			if err := l.Register(mgr); err != nil {
				return err
			}
		}
		if err := namespace.New(hub, namespace.Options{}).Register(ctx, mgr); err != nil {
			return err
		}
		return mgr.Add(registry)
	})
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fleet) eventually(what string, check func() error) {
	f.Helper()
	servertest.Eventually(f, what, func(context.Context) error { return check() })
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// work writes a Work with a ConfigMap of its name, and waits until the member has it.
func (f *fleet) work(cluster, name string) {
	f.Helper()
	f.workWith(cluster, name, string(manifests(name)[0].Raw))
}

// workWith writes a Work with a manifest, and waits until the member has it.
func (f *fleet) workWith(cluster, name, manifest string) {
	f.Helper()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	f.check(f.hub.Hub.Create(f.Context(), w))
	f.eventually(name+" is applied", func() error {
		if err := f.hub.Hub.Get(f.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkApplied) {
			return fmt.Errorf("conditions: %v", w.Status.Conditions)
		}
		return nil
	})
}

func manifests(name string) []workv1alpha1.Manifest {
	return []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q},"data":{"key":"1"}}`, name)}}}
}

// left applies a ConfigMap in the member as it was while the cluster had another name.
func (f *fleet) left(name string) {
	f.Helper()
	kept := configMap("kept")
	f.check(f.edge.Get(f.Context(), client.ObjectKeyFromObject(kept), kept))
	notes := maps.Clone(kept.Annotations)
	notes[workv1alpha2.WorkNamespaceAnnotation], notes[workv1alpha2.WorkNameAnnotation] = workv1alpha2.ExecutionNamespace("former"), name
	f.check(f.edge.Apply(f.Context(), corev1apply.ConfigMap(name, "shop").WithLabels(kept.Labels).WithAnnotations(notes),
		client.FieldOwner(ownership.FieldManager)))
}

// lose has a Work vanish without its object: as a store does that was set back.
func (f *fleet) lose(cluster, name string) {
	f.Helper()
	f.check(f.stop())
	defer f.start()
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}}
	f.check(f.hub.Hub.Patch(f.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.check(f.hub.Hub.Delete(f.Context(), w))
}

// says waits until the Cluster says this of orphans; empty for nothing.
func (f *fleet) says(want string) {
	f.Helper()
	f.eventually("the Cluster says "+want, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(f.Context(), client.ObjectKey{Name: "east"}, c); err != nil {
			return err
		}
		got := ""
		if condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound); condition != nil {
			got, _, _ = strings.Cut(condition.Message, ";")
		}
		if got != want {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

func (f *fleet) there(name string) error {
	return f.edge.Get(f.Context(), client.ObjectKeyFromObject(configMap(name)), configMap(name))
}

// fleetOf runs a control plane, with a member that is not in the fleet yet.
func fleetOf(t *testing.T) (*fleet, *membertest.Member) {
	t.Helper()
	at := edges.Member(t, member.Options{Name: "east", Nodes: 1})
	edge, err := client.New(at.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{T: t, hub: hubs.Env(t), edge: edge, events: &reported{reasons: map[string]int{}}}
	f.start()
	t.Cleanup(func() { f.check(f.stop()) })
	f.check(f.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	return f, at
}

// measured is what the metric says of the cluster; zero for nothing.
func measured(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "flotilla_orphans" {
			for _, m := range family.GetMetric() {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// TestOrphans: an object that no Work names is reported, in the Cluster, an Event and
// a metric, and stays until the Cluster's policy, or a Work that asks for it, says
// otherwise. So is one that was left when the cluster had another name, unless the
// cluster of that name asks for it. A copy that somebody made of one of our objects is none.
func TestOrphans(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	f, at := fleetOf(t)
	edge := f.edge
	f.check(join.Join(t.Context(), join.Options{Name: "east", Hub: f.hub.Hub, Member: edge, MemberConfig: at.Config}))
	f.check(join.Ready(t.Context(), f.hub.Hub, "east", fleettest.ReadyTimeout))
	f.work("east", "kept")
	f.work("east", "lost")

	copied := configMap("lost")
	f.check(edge.Get(t.Context(), client.ObjectKeyFromObject(copied), copied))
	f.check(edge.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "copy", Labels: copied.Labels, Annotations: copied.Annotations,
	}}))
	f.lose("east", "lost")
	f.says("1 object that no Work names: ConfigMap shop/lost")
	f.check(f.there("lost"))
	f.eventually("an Event tells of it", func() error {
		if n := f.events.count(clusterv1alpha1.ClusterConditionOrphansFound); n != 1 {
			return fmt.Errorf("%d Events", n)
		}
		return nil
	})
	if n := measured(t); n != 1 {
		t.Errorf("the metric says %v", n)
	}
	f.hub.QuietRevision(t)

	f.work("east", "lost")
	f.says("")
	asked := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("former"), Name: "asked"}}
	asked.Spec.Workload.Manifests = manifests("asked")
	f.check(f.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: asked.Namespace}}))
	f.check(f.hub.Hub.Create(t.Context(), asked))
	f.left("asked")
	f.left("left")
	f.lose("east", "lost")
	f.says("2 objects that no Work names: ConfigMap shop/left, ConfigMap shop/lost")
	f.hold.Store(&hubclaim.Hold{})
	f.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(t.Context(), client.ObjectKey{Name: "east"}, c); err != nil {
			return err
		}
		c.Annotations = map[string]string{clusterv1alpha1.OrphansAnnotation: clusterv1alpha1.OrphansDelete}
		return f.hub.Hub.Update(t.Context(), c)
	}))
	f.eventually("the Cluster says that nothing is removed from a control plane that was set back", func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(t.Context(), client.ObjectKey{Name: "east"}, c); err != nil {
			return err
		}
		if found := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound); found == nil || !strings.Contains(found.Message, "flotilla resume hub") {
			return fmt.Errorf("conditions: %v", c.Status.Conditions)
		}
		return f.there("lost")
	})
	f.hub.QuietRevision(t)
	f.check(f.there("lost"))
	f.hold.Store(nil)
	f.wake()
	f.says("")
	for _, name := range []string{"lost", "left"} {
		f.eventually("the policy has "+name+" removed", func() error {
			if err := f.there(name); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is still there"), err)
			}
			return nil
		})
	}
	for _, name := range []string{"kept", "copy", "asked"} {
		if err := f.there(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := measured(t); n != 0 {
		t.Errorf("the metric says %v of none", n)
	}
}

// TestAnOrphanThatAFinalizerHolds: that its deletion was requested is no reason to call it
// gone, and the Cluster's policy does not tell it again and again.
func TestAnOrphanThatAFinalizerHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	f, at := fleetOf(t)
	f.check(join.Join(t.Context(), join.Options{Name: "east", Hub: f.hub.Hub, Member: f.edge, MemberConfig: at.Config}))
	f.check(join.Ready(t.Context(), f.hub.Hub, "east", fleettest.ReadyTimeout))
	for _, name := range []string{"kept", "more", "most", "lost"} {
		f.work("east", name)
	}
	finalizers := func(list string) {
		f.check(f.edge.Patch(t.Context(), configMap("lost"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+list+`}}`))))
	}
	finalizers(`["example.com/hold"]`)
	f.check(f.stop())
	f.check(f.edge.Delete(t.Context(), configMap("lost")))
	f.start()
	f.lose("east", "lost")
	const leaving = "1 object that no Work names: ConfigMap shop/lost (being deleted)"
	f.says(leaving)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	f.check(f.hub.Hub.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.OrphansAnnotation, clusterv1alpha1.OrphansDelete))))
	f.hub.QuietRevision(t)
	f.says(leaving)
	stays, err := join.Stays(t.Context(), at.Config, "east", f.identity())
	if want := []string{"ConfigMap shop/lost (being deleted, kept by its finalizers: example.com/hold)"}; err != nil || !slices.Contains(stays.Titles, want[0]) {
		t.Errorf("what stays: %v, %v; want %v among it", stays.Titles, err, want)
	}
	finalizers("null")
	f.says("")
}

// TestAClaimThatIsLeft: what holds data is reported, after a restart too, and no policy of the Cluster removes it.
func TestAClaimThatIsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	f, at := fleetOf(t)
	f.check(join.Join(t.Context(), join.Options{Name: "east", Hub: f.hub.Hub, Member: f.edge, MemberConfig: at.Config}))
	f.check(join.Ready(t.Context(), f.hub.Hub, "east", fleettest.ReadyTimeout))
	for _, name := range []string{"kept", "more", "most"} {
		f.work("east", name)
	}
	for _, name := range []string{"data", "extra"} {
		f.workWith("east", name, fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"shop","name":%q},`+
			`"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, name))
	}
	f.lose("east", "data")
	f.says("1 object that no Work names: PersistentVolumeClaim shop/data (with its data)")
	f.lose("east", "extra") // no Work names the kind when the loops begin
	const left = "2 objects that no Work names: PersistentVolumeClaim shop/data (with its data), PersistentVolumeClaim shop/extra (with its data)"
	f.says(left)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	f.check(f.hub.Hub.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.OrphansAnnotation, clusterv1alpha1.OrphansDelete))))
	f.hub.QuietRevision(t)
	f.says(left)
	f.check(f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, &corev1.PersistentVolumeClaim{}))
}

// identity is that of the control plane.
func (f *fleet) identity() string {
	f.Helper()
	id, err := join.HubIdentity(f.Context(), f.hub.Hub)
	f.check(err)
	return id
}

// TestAClusterOfAnotherName: what is left in a member that was in the fleet under another
// name is reported, although no Work names its kind.
func TestAClusterOfAnotherName(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	f, at := fleetOf(t)
	f.check(join.Join(t.Context(), join.Options{Name: "former", Hub: f.hub.Hub, Member: f.edge, MemberConfig: at.Config}))
	f.check(join.Ready(t.Context(), f.hub.Hub, "former", fleettest.ReadyTimeout))
	f.work("former", "left")
	f.lose("former", "left")
	f.check(f.stop()) // it is away when it leaves
	former := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "former"}}
	f.check(f.hub.Hub.Delete(t.Context(), former))
	f.check(f.hub.Hub.Patch(t.Context(), former, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	f.start()
	f.check(join.Join(t.Context(), join.Options{Name: "east", Hub: f.hub.Hub, Member: f.edge, MemberConfig: at.Config}))
	f.says("1 object that no Work names: ConfigMap shop/left")
	f.check(f.there("left"))
	f.hub.QuietRevision(t)
}

// TestWhatAStoreThatWasSetBackDoesNotKnow is told, of kinds as well that none of its Works names.
func TestWhatAStoreThatWasSetBackDoesNotKnow(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	f, at := fleetOf(t)
	f.check(join.Join(t.Context(), join.Options{Name: "east", Hub: f.hub.Hub, Member: f.edge, MemberConfig: at.Config}))
	f.check(join.Ready(t.Context(), f.hub.Hub, "east", fleettest.ReadyTimeout))
	f.work("east", "kept")
	kept := configMap("kept")
	f.check(f.edge.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	notes := maps.Clone(kept.Annotations)
	notes[workv1alpha2.WorkNameAnnotation] = "since"
	f.check(f.edge.Apply(t.Context(), corev1apply.Secret("since", "shop").WithLabels(kept.Labels).WithAnnotations(notes), client.FieldOwner(ownership.FieldManager)))
	f.hold.Store(&hubclaim.Hold{})
	f.check(f.stop())
	f.start()
	f.says("1 object that no Work names: Secret shop/since")
}
