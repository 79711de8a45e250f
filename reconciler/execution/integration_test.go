package execution_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
)

// TestFleet walks through a member's life with real API servers: it joins, gets Works,
// is tampered with, loses its control plane, is unreachable and comes back, and
// leaves.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"a cluster is ready soon after it joined", testJoin},
		{"a namespace of the hub is made in the member", testNamespace},
		{"the namespaces of the member's own are left alone", testOwnNamespaces},
		{"a workload runs and its status comes back, in few writes", testWorkload},
		{"what does not start says why", testNotStarting},
		{"what gets no Pods says why", testNotMade},
		{"a change reaches the member", testLatency},
		{"what others change of ours is put back, and nothing else", testDrift},
		{"a port whose number others change is put back, and theirs stay", testPort},
		{"what is removed in the member is made again", testRemovedInMember},
		{"what is in the way is left alone until told otherwise", testConflict},
		{"what others change is reported and left alone where that is wanted", testReported},
		{"what runs already is adopted without a restart", testAdopted},
		{"what something in the member scales keeps its replicas", testScaled},
		{"a Work that somebody wrote is carried like others", testByHand},
		{"pull secrets that the member added stay, those of Git go with it", testPullSecrets},
		{"a suspended Work keeps changes from the member", testSuspended},
		{"a Work that preserves leaves its object behind, unmarked", testPreserved},
		{"a restart with nothing changed writes nothing", testRestart},
		{"a member that was away catches up", testAway},
		{"a member that leaves is cleaned", testUnjoin},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, f) }) {
			return
		}
	}
}

func testJoin(t *testing.T, f *fleet) {
	f.join(t)
	created := time.Now()
	want := map[string]any{
		"finalizers": []string{clusterv1alpha1.ClusterControllerFinalizer},
		"taints":     0,
		"complete":   true,
		"nodes":      clusterv1alpha1.NodeSummary{TotalNum: 1, ReadyNum: 1},
		"deployment": clusterv1alpha1.APIEnabled,
		"version":    true,
	}
	eventually(t, "the cluster is ready", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || c.Status.NodeSummary == nil || c.Status.ResourceSummary == nil {
			return fmt.Errorf("status: %v", c.Status)
		}
		got := map[string]any{
			"finalizers": c.Finalizers,
			"taints":     len(c.Spec.Taints),
			"complete":   meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements),
			"nodes":      *c.Status.NodeSummary,
			"deployment": c.APIEnablement(appsv1.SchemeGroupVersion.WithKind("Deployment")),
			"version":    strings.HasPrefix(c.Status.KubernetesVersion, "v1."),
		}
		if diff := cmp.Diff(want, got); diff != "" { // a node may be ready a little later
			return errors.New(diff)
		}
		return nil
	})
	t.Logf("ready %s after the Cluster was created", time.Since(created).Round(time.Millisecond))
	again := join.Join(t.Context(), join.Options{Name: "eu-2", Hub: f.hub.Hub, Member: f.edge, MemberConfig: f.member.Config})
	if !errors.Is(again, join.ErrTaken) {
		t.Errorf("joined under another name: %v, want %v", again, join.ErrTaken)
	}
	f.idle(t)
}

// idle waits until nothing is written to the hub for longer than the loops'
// intervals, and returns its revision. It fails if the loops write while nothing
// happens.
func (f *fleet) idle(t *testing.T) int64 {
	t.Helper()
	var before int64
	eventually(t, "no writes while nothing happens", func(context.Context) error {
		before = f.hub.QuietRevision(t)
		rounds := time.NewTimer(3 * period)
		defer rounds.Stop()
		<-rounds.C
		if f.hub.Revision(t) != before {
			return fmt.Errorf("written: %v", f.hub.Written(t, before))
		}
		return nil
	})
	return before
}

func testNamespace(t *testing.T, f *fleet) {
	if err := f.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "web"}}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is in the member", func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := f.edge.Get(ctx, client.ObjectKey{Name: "shop"}, ns); err != nil {
			return err
		}
		if ns.Labels["team"] != "web" || ns.Labels[workv1alpha2.ManagedByKarmadaLabel] != "true" {
			return fmt.Errorf("labels: %v", ns.Labels)
		}
		return nil
	})
}

// testOwnNamespaces checks whether namespaces that every cluster has are marked as managed.
func testOwnNamespaces(t *testing.T, f *fleet) {
	var list corev1.NamespaceList
	if err := f.edge.List(t.Context(), &list, client.MatchingLabels{workv1alpha2.ManagedByKarmadaLabel: "true"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if diff := cmp.Diff([]string{"shop"}, names); diff != "" {
		t.Errorf("namespaces that the hub manages (-want +got):\n%s", diff)
	}
}

func web(image string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: image}}},
			},
		},
	}
}

func testWorkload(t *testing.T, f *fleet) {
	before := f.hub.QuietRevision(t)
	start := time.Now()
	f.web = f.template(t, web("nginx:1"), 2)
	eventually(t, "the deployment is in the member", func(ctx context.Context) error {
		return f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, &appsv1.Deployment{})
	})
	t.Logf("in the member %s after its template was written", time.Since(start).Round(time.Millisecond))
	work := f.applied(t, f.web)
	t.Logf("healthy after %s", time.Since(start).Round(time.Millisecond))
	want := workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	if diff := cmp.Diff(want, work.Status.ManifestStatuses[0].Identifier); diff != "" {
		t.Errorf("identifier (-want +got):\n%s", diff)
	}
	eventually(t, "the status is back", func(ctx context.Context) error {
		b, d := &workv1alpha2.ResourceBinding{}, &appsv1.Deployment{}
		if err := f.hub.Hub.Get(ctx, client.ObjectKeyFromObject(f.web), b); err != nil {
			return err
		}
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, d); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied) || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.Scheduled) {
			return fmt.Errorf("binding: %v", b.Status)
		}
		if d.Status.ReadyReplicas != 2 || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("template: %v", d.Status)
		}
		return nil
	})
	took := time.Since(start)
	writes := f.hub.QuietRevision(t) - before
	t.Logf("%d writes for one Deployment on one cluster, the status back after %s", writes, took.Round(time.Millisecond))
	// A rollout that takes longer shows progress: the Work, the binding and the
	// template once in a quarter of a second, and the cluster's pods once in a
	// period.
	if most := 9 + 3*int64(took/(250*time.Millisecond)) + int64(took/period); writes > most {
		t.Errorf("%d writes for one Deployment on one cluster, want at most %d", writes, most)
	}
}

// testLatency logs how long it takes until a changed Work is applied in the member.
func testLatency(t *testing.T, f *fleet) {
	template := config("latency", "0")
	b := f.template(t, template, 0)
	f.applied(t, b)
	var took []time.Duration
	for i := range 20 {
		template.Data["key"] = strconv.Itoa(i + 1)
		f.carry(t, b, template)
		start := time.Now()
		err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
			got, err := f.value(ctx, "latency")
			return got == template.Data["key"], err
		})
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("a changed Work stands in the member after %s (median), %s (worst of %d)", took[len(took)/2], took[len(took)-1], len(took))
	f.applied(t, b)
}

func testDrift(t *testing.T, f *fleet) {
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	d := &appsv1.Deployment{}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the member's controllers write it too
		if err := f.edge.Get(t.Context(), key, d); err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Image = "evil:1"
		d.Annotations["note"] = "kept"
		return f.edge.Update(t.Context(), d)
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the image is put back", func(ctx context.Context) error {
		if err := f.edge.Get(ctx, key, d); err != nil {
			return err
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "nginx:1" {
			return fmt.Errorf("image: %s", image)
		}
		return nil
	})
	if d.Annotations["note"] != "kept" {
		t.Errorf("an annotation of others is gone: %v", d.Annotations)
	}
	f.drifted(t, f.web, workv1alpha1.WorkDriftRevertedReason, "Deployment shop/web: spec.template.spec.containers[web].image changed by execution.test at 2")
	f.applied(t, f.web)
}

func testRemovedInMember(t *testing.T, f *fleet) {
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	d := &appsv1.Deployment{}
	if err := f.edge.Get(t.Context(), key, d); err != nil {
		t.Fatal(err)
	}
	was := d.UID
	if err := f.edge.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deployment is made again", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := f.edge.Get(ctx, key, d); err != nil {
			return err
		}
		if d.UID == was {
			return errors.New("it is still the old one")
		}
		return nil
	})
	f.applied(t, f.web)
	f.drifted(t, f.web, workv1alpha1.WorkDriftRevertedReason, "Deployment shop/web was removed; put back at 2")
}

func config(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"key": value}}
}

func (f *fleet) value(ctx context.Context, name string) (string, error) {
	cm := &corev1.ConfigMap{}
	err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, cm)
	return cm.Data["key"], err
}

func testConflict(t *testing.T, f *fleet) {
	if err := f.edge.Create(t.Context(), config("taken", "theirs")); err != nil {
		t.Fatal(err)
	}
	template := config("taken", "ours")
	b := f.template(t, template, 0)
	eventually(t, "the work fails", func(ctx context.Context) error {
		work, err := f.work(ctx, b)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "already exists") {
			return fmt.Errorf("condition: %v", c)
		}
		return nil
	})
	if got, err := f.value(t.Context(), "taken"); err != nil || got != "theirs" {
		t.Fatalf("value = %q, %v: not ours to change", got, err)
	}
	b.Spec.ConflictResolution = "Overwrite"
	f.carry(t, b, template)
	f.applied(t, b)
	if got, err := f.value(t.Context(), "taken"); err != nil || got != "ours" {
		t.Errorf("value = %q, %v: it was to be taken over", got, err)
	}
}

func testSuspended(t *testing.T, f *fleet) {
	template := config("paused", "first")
	b := f.template(t, template, 0)
	f.applied(t, b)
	b.Spec.Suspension = &workv1alpha2.Suspension{}
	b.Spec.Suspension.Dispatching = ptr.To(true)
	says := func(what string, latest bool) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			work, err := f.work(ctx, b)
			if err != nil {
				return err
			}
			dispatching := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDispatching)
			applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
			if dispatching == nil || dispatching.Status != metav1.ConditionFalse || dispatching.ObservedGeneration != work.Generation ||
				applied.Status != metav1.ConditionTrue || (applied.ObservedGeneration == work.Generation) != latest {
				return fmt.Errorf("generation %d, conditions: %v", work.Generation, work.Status.Conditions)
			}
			return nil
		})
	}
	f.carry(t, b, template)
	says("it is suspended, and the member has the latest version", true)
	template.Data["key"] = "second"
	f.carry(t, b, template)
	says("it is suspended, and the member has an older version", false)
	if got, err := f.value(t.Context(), "paused"); err != nil || got != "first" {
		t.Errorf("value = %q, %v: a suspended change reached the member", got, err)
	}
	b.Spec.Suspension = nil
	f.carry(t, b, template)
	f.applied(t, b)
	if got, err := f.value(t.Context(), "paused"); err != nil || got != "second" {
		t.Errorf("value = %q, %v: the change did not go on", got, err)
	}
}

func testPreserved(t *testing.T, f *fleet) {
	kept, gone := config("kept", "1"), config("gone", "1")
	keep, drop := f.template(t, kept, 0), f.template(t, gone, 0)
	keep.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	f.carry(t, keep, kept)
	for _, b := range []*workv1alpha2.ResourceBinding{keep, drop} {
		work := f.applied(t, b)
		if err := f.hub.Hub.Delete(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the work is gone", func(ctx context.Context) error {
			if _, err := f.work(ctx, b); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	eventually(t, "the object is gone", func(ctx context.Context) error {
		if _, err := f.value(ctx, "gone"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	left := &corev1.ConfigMap{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "kept"}, left); err != nil {
		t.Fatal(err)
	}
	for key := range left.Labels {
		t.Errorf("label %s is left", key)
	}
	for key := range left.Annotations {
		t.Errorf("annotation %s is left", key)
	}
}

func testRestart(t *testing.T, f *fleet) {
	before := f.idle(t)
	d := &appsv1.Deployment{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d); err != nil {
		t.Fatal(err)
	}
	f.stopLoops()
	f.startLoops()
	// Once the new loops have applied a change, they are up.
	template := config("after-restart", "1")
	b := f.template(t, template, 0)
	work := f.applied(t, b)
	eventually(t, "the member carries how far it has seen the hub", func(ctx context.Context) error { return f.marked(ctx, work.ResourceVersion) })
	f.hub.QuietRevision(t)
	want := []string{
		"*v1.ConfigMap shop/after-restart",
		"*v1.Namespace /kube-system", // that these loops have begun, once
		"*v1alpha1.Work karmada-es-eu-1/" + workv1alpha2.WorkName("ConfigMap", "after-restart", "shop"),
		"*v1alpha2.ResourceBinding shop/after-restart-configmap",
	}
	if diff := cmp.Diff(want, f.since(t, before)); diff != "" {
		t.Errorf("written since the restart (-want +got):\n%s", diff)
	}
	is := &appsv1.Deployment{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, is); err != nil {
		t.Fatal(err)
	}
	if d.ResourceVersion != is.ResourceVersion {
		t.Error("the restart wrote to the member")
	}
}

func testAway(t *testing.T, f *fleet) {
	f.member.Stop()
	template := config("meanwhile", "1")
	b := f.template(t, template, 0)
	eventually(t, "the cluster is not ready", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if condition == nil || condition.Reason != clusterv1alpha1.ClusterNotReachableReason || len(c.Spec.Taints) != 1 {
			return fmt.Errorf("ready: %v, taints: %v", condition, c.Spec.Taints)
		}
		return nil
	})
	if _, err := f.work(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	f.startMember()
	back := time.Now()
	f.applied(t, b)
	t.Logf("caught up %s after the member was back", time.Since(back).Round(time.Millisecond))
	if got, err := f.value(t.Context(), "meanwhile"); err != nil || got != "1" {
		t.Errorf("value = %q, %v", got, err)
	}
	eventually(t, "the cluster is ready again", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(c.Spec.Taints) != 0 {
			return fmt.Errorf("conditions: %v, taints: %v", c.Status.Conditions, c.Spec.Taints)
		}
		return nil
	})
}

func testUnjoin(t *testing.T, f *fleet) {
	others := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kept"}}
	var bindings workv1alpha2.ResourceBindingList
	if err := f.hub.Hub.List(t.Context(), &bindings); err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items { // as the scheduler does when a cluster leaves
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":null}}`))
		if err := f.hub.Hub.Patch(t.Context(), &bindings.Items[i], patch); err != nil {
			t.Fatal(err)
		}
	}
	var steps []string
	err := join.Unjoin(t.Context(), join.UnjoinOptions{
		Name: "eu-1", Hub: f.hub.Hub, Member: f.edge, Wait: timeout,
		Progress: func(s join.Step) {
			if !strings.HasPrefix(s.Object, "Secret") { // the garbage collector may be quicker
				steps = append(steps, s.String())
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"removed Cluster eu-1 (hub)",
		"removed ClusterRoleBinding karmada-controller-manager:karmada-eu-1 (member)",
		"removed ClusterRole karmada-controller-manager:karmada-eu-1 (member)",
		"removed ServiceAccount karmada-cluster/karmada-eu-1 (member)",
		"removed ServiceAccount karmada-cluster/karmada-impersonator (member)",
		"removed Namespace karmada-cluster (member)",
	}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(others), others); err != nil {
		t.Errorf("what is not the hub's any more: %v", err)
	}
	for what, obj := range map[string]client.Object{
		"deployment": &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}},
		"role":       &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-controller-manager:karmada-eu-1"}},
	} {
		eventually(t, "the "+what+" is gone from the member", func(ctx context.Context) error {
			if err := f.edge.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}
