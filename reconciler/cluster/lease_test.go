package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	flotillahub "github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// pulled is a cluster in pull mode. Its agent reported that it is ready, or nothing.
func pulled(ready metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "edge-1", Generation: 1, Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
	}
	if ready != "" {
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready, Reason: "AsTheAgentSays"}}
	}
	return c
}

// watcher is the hub's loop over one cluster in pull mode.
type watcher struct {
	*Reconciler
	hub   client.Client
	clock *clocktesting.FakeClock
}

func watchOver(objects ...client.Object) *watcher {
	c := clocktesting.NewFakeClock(time.Unix(1000, 0))
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithStatusSubresource(&clusterv1alpha1.Cluster{}).Build()
	return &watcher{
		Reconciler: New(hub, hub, members.New(members.Options{Interpreter: interpreter.Native()}), record.NewFakeRecorder(100), Options{Clock: clock.WithTicker(c)}),
		hub:        hub, clock: c,
	}
}

// look reconciles, and returns what is reported of the cluster and when to look again.
func (w *watcher) reconcile(t *testing.T) (ready, taint string, again time.Duration) {
	t.Helper()
	key := client.ObjectKey{Name: "edge-1"}
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.hub.Get(t.Context(), key, cluster); err != nil {
		t.Fatal(err)
	}
	if c := readiness(cluster); c != nil {
		ready = string(c.Status) + " " + c.Reason
	}
	for _, t := range cluster.Spec.Taints {
		taint += t.Key
	}
	return ready, taint, result.RequeueAfter
}

func (w *watcher) beat(t *testing.T, namespace string, agents time.Time) {
	t.Helper()
	at := metav1.NewMicroTime(agents)
	w.heartbeats.Update(t.Context(), event.UpdateEvent{ObjectNew: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edge-1"}, Spec: coordinationv1.LeaseSpec{RenewTime: &at},
	}}, nil)
}

func TestAClusterInPullModeIsJudgedByWhatItsAgentDoes(t *testing.T) {
	type seen struct {
		Ready, Taint string
		Again        time.Duration
	}
	const s = time.Second
	ours, others := workv1alpha2.NamespaceKarmadaCluster, "kube-node-lease"
	yesterday := time.Unix(1000, 0).Add(-24 * time.Hour) // by the agent's clock
	ready := seen{"True AsTheAgentSays", "", 40 * s}
	unknown := seen{"Unknown ClusterStatusUnknown", clusterv1alpha1.TaintClusterUnreachable, 0}
	cases := map[string]struct {
		reported metav1.ConditionStatus
		steps    func(t *testing.T, w *watcher)
		want     seen
	}{
		"one that reported is given forty seconds": {metav1.ConditionTrue, func(*testing.T, *watcher) {}, ready},
		"and not more": {metav1.ConditionTrue, func(_ *testing.T, w *watcher) {
			w.clock.Step(40 * s)
		}, unknown},
		"a renewed lease starts the count over, whatever the agent's clock says": {metav1.ConditionTrue, func(t *testing.T, w *watcher) {
			w.clock.Step(30 * s)
			w.beat(t, ours, yesterday)
			w.clock.Step(30 * s)
		}, seen{"True AsTheAgentSays", "", 10 * s}},
		"a lease that is seen again without a renewal does not": {metav1.ConditionTrue, func(t *testing.T, w *watcher) {
			w.beat(t, ours, yesterday)
			w.clock.Step(40 * s)
			w.beat(t, ours, yesterday)
		}, unknown},
		"nor does one of another namespace": {metav1.ConditionTrue, func(t *testing.T, w *watcher) {
			w.clock.Step(40 * s)
			w.beat(t, others, yesterday)
		}, unknown},
		"one that is not ready is judged, too": {metav1.ConditionFalse, func(_ *testing.T, w *watcher) {
			w.clock.Step(41 * s)
		}, unknown},
		"one that has never reported is given a minute": {"", func(_ *testing.T, w *watcher) {
			w.clock.Step(59 * s)
		}, seen{"", clusterv1alpha1.TaintClusterNotReady, s}},
		"and is then told so": {"", func(_ *testing.T, w *watcher) {
			w.clock.Step(60 * s)
		}, seen{"Unknown ClusterStatusNeverUpdated", clusterv1alpha1.TaintClusterUnreachable, 0}},
		"an agent that reports again is believed": {metav1.ConditionTrue, func(t *testing.T, w *watcher) {
			w.clock.Step(40 * s)
			w.reconcile(t)
			cluster := &clusterv1alpha1.Cluster{}
			if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "edge-1"}, cluster); err != nil {
				t.Fatal(err)
			}
			cluster.Status = pulled(metav1.ConditionTrue).Status
			if err := w.hub.Status().Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}, ready},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := watchOver(pulled(tc.reported))
			w.reconcile(t)
			tc.steps(t, w)
			var got seen
			got.Ready, got.Taint, got.Again = w.reconcile(t)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnAgentHeldGoesWithItsCluster(t *testing.T) {
	space := workv1alpha2.ExecutionNamespace("edge-1")
	for name, tc := range map[string]struct {
		reported metav1.ConditionStatus
		want     []string
	}{
		"an agent that is there takes it down itself": {metav1.ConditionTrue, []string{workv1alpha2.ExecutionControllerFinalizer, "others.example.com/hold"}},
		"one that is not ready has its works let go":  {metav1.ConditionFalse, []string{"others.example.com/hold"}},
		"one that never came has, too":                {"", []string{"others.example.com/hold"}},
	} {
		t.Run(name, func(t *testing.T) {
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: space, Name: "web", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer, "others.example.com/hold"},
			}}
			cluster := pulled(tc.reported)
			w := watchOver(cluster, work, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
			if err := w.hub.Delete(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			w.reconcile(t)
			if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, work.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnAgentThatIsBackRemovesWhatRunsThere: its cluster does not count as ready yet, and answers all the same.
func TestAnAgentThatIsBackRemovesWhatRunsThere(t *testing.T) {
	space := workv1alpha2.ExecutionNamespace("edge-1")
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "web", Finalizers: []string{workv1alpha2.ExecutionControllerFinalizer}}}
	cluster := pulled(metav1.ConditionFalse)
	cluster.Status.Conditions[0].Reason = clusterv1alpha1.ClusterAnswersAgainReason
	w := watchOver(cluster, work, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}})
	if err := w.hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{workv1alpha2.ExecutionControllerFinalizer}, work.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

func TestAnAgentReportsForItsOwnCluster(t *testing.T) {
	cluster := pulled(metav1.ConditionUnknown)
	cluster.Finalizers = nil
	w := watchOver(cluster)
	w.opts.Own = "edge-1"
	w.opts.Target = func(_ context.Context, c *clusterv1alpha1.Cluster) (members.Target, error) {
		return members.Target{Name: c.Name, Config: unusedConfig()}, nil
	}
	w.reconcile(t)
	p := w.watches.get("edge-1")
	if p == nil {
		t.Fatal("there is no connection")
	}
	w.watches.byCluster["edge-1"].seen = &observation{outcome: well, version: "v1.36.4", kinds: some}
	w.reconcile(t)
	got := &clusterv1alpha1.Cluster{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "edge-1"}, got); err != nil {
		t.Fatal(err)
	}
	want := pulled("")
	want.Finalizers = nil // finalizer, taints and namespace are the hub's part
	want.Status = clusterv1alpha1.ClusterStatus{
		KubernetesVersion: "v1.36.4", APIEnablements: some,
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "True", Reason: "ClusterReady", Message: clusterv1alpha1.ClusterReadyMessage},
			{Type: "CompleteAPIEnablements", Status: "True", Reason: "Complete", Message: "all kinds were read from the cluster"},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("cluster (-want +got):\n%s", diff)
	}
	if w.opts.ofInterest(pushed("a", "")) {
		t.Error("another cluster is of interest")
	}
	turned := got.DeepCopy()
	turned.Status.Conditions[0].Status, turned.ResourceVersion = metav1.ConditionUnknown, "1000000"
	if !w.desiredChanges().Update(event.UpdateEvent{ObjectOld: got, ObjectNew: turned}) {
		t.Error("that the hub holds the cluster for silent goes unnoticed")
	}
}

// TestAnAgentReportsHowItIsOnceItsHubIsBack: a hub that was gone itself has nothing
// new to say that would bring the cluster in, and failures would be further and
// further apart.
func TestAnAgentReportsHowItIsOnceItsHubIsBack(t *testing.T) {
	cluster := pulled(metav1.ConditionTrue)
	away := true
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).WithStatusSubresource(cluster).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, part string, obj client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			if away {
				return fmt.Errorf("patch: %w", flotillahub.ErrAway)
			}
			return c.SubResource(part).Patch(ctx, obj, patch, o...)
		},
	}).Build()
	w := watchOver()
	w.Reconciler.hub, w.hub = hub, hub
	w.opts.Own = "edge-1"
	w.opts.Target = func(_ context.Context, c *clusterv1alpha1.Cluster) (members.Target, error) {
		return members.Target{Name: c.Name, Config: unusedConfig()}, nil
	}
	w.reconcile(t)
	w.watches.byCluster["edge-1"].seen = &observation{outcome: unwell}
	for range 20 {
		if _, _, again := w.reconcile(t); again != w.opts.Period {
			t.Fatalf("looks again after %s, want %s", again, w.opts.Period)
		}
	}
	away = false
	if ready, _, _ := w.reconcile(t); ready != "False ClusterNotReady" {
		t.Errorf("the hub is told %q", ready)
	}
}

func unusedConfig() *rest.Config { return &rest.Config{Host: "https://127.0.0.1:1"} }

// TestAClusterThatTurnsIsReported: one Event when nothing is heard any more, and one when
// it is back.
func TestAClusterThatTurnsIsReported(t *testing.T) {
	w := watchOver(pulled(metav1.ConditionTrue))
	events := record.NewFakeRecorder(10)
	w.events = events
	w.reconcile(t)
	w.clock.Step(41 * time.Second)
	w.reconcile(t)
	w.reconcile(t)
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "edge-1"}, cluster); err != nil {
		t.Fatal(err)
	}
	s := &state{cluster: cluster, status: cluster.Status.DeepCopy(), seen: &observation{outcome: well}}
	meta.SetStatusCondition(&s.status.Conditions, ready(well))
	if _, err := w.report(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	close(events.Events)
	var reported []string
	for e := range events.Events {
		reported = append(reported, e)
	}
	if len(reported) != 2 || !strings.HasPrefix(reported[0], "Warning ClusterStatusUnknown ") || !strings.HasPrefix(reported[1], "Normal ClusterReady ") {
		t.Errorf("told %q, want that nothing is heard, and that it is back", reported)
	}
}

func TestAClusterInPullModeSeesThatTheHubWaits(t *testing.T) {
	w := watchOver(pulled(metav1.ConditionTrue))
	events := record.NewFakeRecorder(10)
	w.events = events
	hold := &hubclaim.Hold{Clusters: []string{"edge-1"}}
	w.opts.Hold = func() *hubclaim.Hold { return hold }
	held := func() string {
		cluster := &clusterv1alpha1.Cluster{}
		if err := w.hub.Get(t.Context(), client.ObjectKey{Name: "edge-1"}, cluster); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionHeld); c != nil {
			return string(c.Status) + " " + c.Message
		}
		return ""
	}
	w.reconcile(t)
	w.reconcile(t)
	if got := held(); got != "True "+hold.Describe() || len(events.Events) != 1 {
		t.Errorf("it says %q, after %d Events", got, len(events.Events))
	}
	hold = nil
	if w.reconcile(t); held() != "" {
		t.Errorf("afterwards it says %q", held())
	}
}

// TestAClusterInPushModeSaysThatItWasCompared: while the hub waits, one that does not is
// told from one that was not looked at yet.
func TestAClusterInPushModeSaysThatItWasCompared(t *testing.T) {
	hold := &hubclaim.Hold{Clusters: []string{"west"}}
	o := &Options{Clock: clock.RealClock{}, Hold: func() *hubclaim.Hold { return hold }}
	s := &state{cluster: &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}}
	s.status = &clusterv1alpha1.ClusterStatus{}
	says := func() string {
		o.waits(s, record.NewFakeRecorder(10))
		if c := meta.FindStatusCondition(s.status.Conditions, clusterv1alpha1.ClusterConditionHeld); c != nil {
			return string(c.Status) + " " + c.Message
		}
		return ""
	}
	if got := says(); got != "False "+hold.Spares() {
		t.Errorf("while another one waits: %q", got)
	}
	hold.Clusters = append(hold.Clusters, "north")
	if got := says(); got != "True "+hold.Describe() {
		t.Errorf("while all wait: %q", got)
	}
	if hold = nil; says() != "" {
		t.Errorf("afterwards: %q", says())
	}
}
