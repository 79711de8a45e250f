package apply_test

import (
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// carried are two clusters to which only the test itself propagates objects, in place of the other loops.
type carried struct {
	*world
	east, west string
}

func newCarried(w *world) carried {
	w.t.Helper()
	short := w.namespace[max(0, len(w.namespace)-20):] // with its random end
	c := carried{w, "in" + short + "-east", "in" + short + "-west"}
	for _, name := range []string{c.east, c.west} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(name)}})
	}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "all"},
		Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "old"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "new"},
		}},
	}
	w.create(policy)
	w.seen(policy)
	return c
}

// bind places a ConfigMap on both clusters, once it exists, as the policy asks.
func (c carried) bind(name string) {
	c.t.Helper()
	policy := &policyv1alpha1.PropagationPolicy{}
	if err := c.Hub.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "all"}, policy); err != nil {
		c.t.Fatal(err)
	}
	var template *unstructured.Unstructured
	c.until(name+" is there", func() (bool, string) {
		template = c.configMap(name)
		return template != nil, "not there"
	})
	before := template.DeepCopy()
	propagation.ClaimOf(policy).Set(template)
	if err := c.Hub.Patch(c.t.Context(), template, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
	digest, err := propagation.Digest(template)
	if err != nil {
		c.t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: workv1alpha2.BindingName("ConfigMap", name),
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: c.namespace + "." + name},
			Annotations: map[string]string{propagation.DigestAnnotation: digest},
		},
		Spec: propagation.BindingSpec(propagation.Template{Object: template}, policy, nil),
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: c.east}, {Name: c.west}}
	propagation.ClaimOf(policy).Set(b)
	c.create(b)
}

// apply reports that a cluster has applied a ConfigMap, and its health.
func (c carried) apply(cluster, name string, health workv1alpha1.ResourceHealth) {
	c.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := c.Hub.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: workv1alpha2.BindingName("ConfigMap", name)}, b); err != nil {
		c.t.Fatal(err)
	}
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("ConfigMap", name, c.namespace), Labels: b.Labels,
			Annotations: map[string]string{
				propagation.DigestAnnotation:                       b.Annotations[propagation.DigestAnnotation],
				workv1alpha2.ResourceBindingNamespaceAnnotationKey: b.Namespace, workv1alpha2.ResourceBindingNameAnnotationKey: b.Name,
			},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q,"labels":{"kustomize.toolkit.fluxcd.io/name":"web","kustomize.toolkit.fluxcd.io/namespace":%[1]q}}}`, c.namespace, name)}}}}},
	}
	if err := c.Hub.Get(c.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		c.create(w)
	}
	w.Status = workv1alpha1.WorkStatus{
		Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", LastTransitionTime: metav1.Now()}},
		ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: health, Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: c.namespace, Name: name}}},
	}
	if err := c.Hub.Status().Update(c.t.Context(), w); err != nil {
		c.t.Fatal(err)
	}
	// The status loop, which does not run here, would write this now.
	b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true})
	if err := c.Hub.Status().Update(c.t.Context(), b); err != nil {
		c.t.Fatal(err)
	}
}

// standing describes why a ConfigMap may still be there, which another one replaces: what the control plane, and the loop's cache, have of all
// that decides about it.
func (c carried) standing(name, by string) string {
	var out []string
	for from, reader := range map[string]client.Reader{"stored": c.Hub, "cached": c.cache} {
		ks, west, work := &kustomizev1.Kustomization{}, &clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}
		at := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(c.west), Name: workv1alpha2.WorkName("ConfigMap", by, c.namespace)}
		err := errors.Join(reader.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "web"}, ks), reader.Get(c.t.Context(), client.ObjectKey{Name: c.west}, west), reader.Get(c.t.Context(), at, work))
		out = append(out, fmt.Sprintf("%s: %v", from, err),
			fmt.Sprintf("Kustomization %s: %+v", ks.ResourceVersion, ks.Status.Conditions),
			fmt.Sprintf("Cluster %s: %+v", west.ResourceVersion, west.Status.Conditions),
			fmt.Sprintf("Work of %s in it %s: %v, %v, %+v", by, work.ResourceVersion, work.Labels, work.Annotations, work.Status.Conditions))
		for _, of := range []string{name, by} {
			b := &workv1alpha2.ResourceBinding{}
			err := reader.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: workv1alpha2.BindingName("ConfigMap", of)}, b)
			out = append(out, fmt.Sprintf("binding of %s %s: %v, %v, %v, %+v, %+v", of, b.ResourceVersion, err, b.Labels, b.Annotations, b.Spec.Clusters, b.Status.AggregatedStatus))
		}
	}
	return strings.Join(append(out, fmt.Sprintf("%s: %v", by, c.configMap(by))), "\n")
}

// tellWhereRunsAre logs, if the test fails, what the runs of Kustomizations wait for at that time.
func (c carried) tellWhereRunsAre() {
	c.t.Cleanup(func() {
		if !c.t.Failed() {
			return
		}
		var all strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			c.t.Log(err)
		}
		for stack := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(stack, "apply.(*Reconciler)") {
				c.t.Log(stack)
			}
		}
	})
}

// prunedFrom waits until the binding of a ConfigMap names the clusters from which it is pruned before the others.
func (c carried) prunedFrom(name string, want ...string) {
	c.t.Helper()
	c.until(name+" is pruned from "+strings.Join(want, ","), func() (bool, string) {
		b := &workv1alpha2.ResourceBinding{}
		if err := c.Hub.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: workv1alpha2.BindingName("ConfigMap", name)}, b); err != nil {
			return false, err.Error()
		}
		got := b.Annotations[gitopsv1alpha1.PrunedFromAnnotation]
		return got == strings.Join(want, ","), got
	})
	if c.configMap(name) == nil {
		c.t.Errorf("%s is gone before all that replaces it stands", name)
	}
}

// TestWhatLeftGoesByCluster: what left a revision is removed from a cluster once all of the revision is applied or,
// with spec.wait, healthy there. Until that is so in all clusters, nothing is deleted on the control plane, and an
// object that comes back into the revision returns to all clusters.
func TestWhatLeftGoesByCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.KustomizationSpec)
		reason string // of Ready, while something stays
		says   string
		// enough is a health that counts as replaced, and less one that does not; empty for none.
		enough, less workv1alpha1.ResourceHealth
	}{
		"applied": {
			change: func(*kustomizev1.KustomizationSpec) {}, reason: meta.ReconciliationSucceededReason,
			says: "; what left it stays until all of it is applied in its cluster: ConfigMap/NAMESPACE/old", enough: workv1alpha1.ResourceUnhealthy,
		},
		"healthy": {
			change: waiting, reason: meta.ProgressingReason,
			says: "; what left it stays until then: ConfigMap/NAMESPACE/old", enough: workv1alpha1.ResourceHealthy, less: workv1alpha1.ResourceUnhealthy,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCarried(newWorld(t))
			first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
			c.kustomization("web", tc.change)
			c.bind("old")
			c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
			c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
			c.ready("web", first)

			second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
			c.until("it says "+tc.says, func() (bool, string) {
				message := c.awaitReason("web", second, tc.reason)
				return strings.HasSuffix(message, strings.ReplaceAll(tc.says, "NAMESPACE", c.namespace)), message
			})
			if diff := cmp.Diff(1, len(inventory.Leaving(c.get("web").Status))); diff != "" {
				t.Errorf("what is leaving (-want +got):\n%s", diff)
			}
			c.prunedFrom("old")
			c.bind("new")
			if tc.less != "" {
				c.apply(c.west, "new", tc.less)
			}
			c.apply(c.east, "new", tc.enough)
			c.prunedFrom("old", c.east)

			third := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old", "new")})
			c.prunedFrom("old")
			fourth := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new"), "app/y.yaml": "# " + third})
			c.awaitReason("web", fourth, tc.reason)
			c.prunedFrom("old", c.east)
			c.apply(c.west, "new", tc.enough)
			c.until("old is gone", func() (bool, string) { return c.configMap("old") == nil, "it is there" })
			c.until("it is owned no more", func() (bool, string) {
				ks := c.ready("web", fourth)
				return len(inventory.Leaving(ks.Status)) == 0 && len(inventoryOf(ks)) == 4, fmt.Sprint(inventoryOf(ks))
			})
			if ready := apimeta.FindStatusCondition(c.get("web").Status.Conditions, meta.ReadyCondition); ready.Message != "Applied revision: "+fourth {
				t.Errorf("message = %q", ready.Message)
			}
			c.until("an Event names what was deleted", func() (bool, string) {
				all := c.events.about("web")
				return strings.Contains(all[len(all)-1], "1 deleted: ConfigMap/"+c.namespace+"/old"), strings.Join(all, "\n")
			})
		})
	}
}

// TestWhatRunsNowhereReplacesNothing: if a workload is renamed so that its policy does not select it any more, the old
// one stays where it runs.
func TestWhatRunsNowhereReplacesNothing(t *testing.T) {
	deployment := func(name string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: NAMESPACE}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}\n"
	}
	w := newWorld(t)
	first := w.commit(map[string]string{"app/x.yaml": deployment("old")})
	w.kustomization("web")
	w.annotate("web", inventory.AllowPruneAnnotation, "true")
	w.ready("web", first)
	second := w.commit(map[string]string{"app/x.yaml": deployment("new")})
	want := "; what left it stays until all of it is applied in its cluster: Deployment/" + w.namespace + "/old; Deployment/" + w.namespace +
		"/new: no policy propagates it, and nothing runs on the control plane itself"
	w.until("it says "+want, func() (bool, string) {
		message := w.awaitReason("web", second, meta.ReconciliationSucceededReason)
		return strings.HasSuffix(message, want), message
	})
	if old := w.object("apps/v1", "Deployment", w.namespace, "old"); old == nil || old.GetDeletionTimestamp() != nil {
		t.Error("the old one is gone")
	}
}

// TestWhatWasLetGoIsMadeAnew: a workload that a revision has dropped, and that stays until it is replaced, comes back with
// another selector. To refuse that would leave all that was dropped for good, as nothing is pruned meanwhile.
func TestWhatWasLetGoIsMadeAnew(t *testing.T) {
	deployment := func(name, label string) string {
		return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: NAMESPACE}\nspec: {selector: {matchLabels: {a: " + label + "}}, template: {metadata: {labels: {a: " + label + "}}, spec: {containers: [{name: a, image: a}]}}}\n"
	}
	w := newWorld(t)
	first := w.commit(map[string]string{"app/x.yaml": deployment("old", "b") + deployment("stays", "b")})
	w.kustomization("web")
	w.annotate("web", inventory.AllowPruneAnnotation, "true")
	w.ready("web", first)
	before := w.object("apps/v1", "Deployment", w.namespace, "old").GetUID()
	w.ready("web", w.commit(map[string]string{"app/x.yaml": deployment("new", "b") + deployment("stays", "b")}))
	if left := inventory.Leaving(w.get("web").Status); len(left) != 1 || left[0].Name != "old" {
		t.Fatalf("what is leaving: %v", left)
	}

	w.ready("web", w.commit(map[string]string{"app/x.yaml": deployment("new", "b") + deployment("old", "c") + deployment("stays", "b")}))
	if old := w.object("apps/v1", "Deployment", w.namespace, "old"); old == nil || old.GetUID() == before {
		t.Errorf("it was not made anew: %v", old)
	}
	message := w.awaitReason("web", w.commit(map[string]string{"app/x.yaml": deployment("new", "b") + deployment("old", "c") + deployment("stays", "c")}), applier.ReasonImmutableField)
	if !strings.Contains(message, "stays") {
		t.Errorf("what was never dropped: %s", message)
	}
}

// TestARefusedRevisionLeavesWhatLeft: what one revision dropped does not return to clusters where it was replaced while
// the next revision is refused, and does not count as dropped by that one.
func TestARefusedRevisionLeavesWhatLeft(t *testing.T) {
	c := newCarried(newWorld(t))
	first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
	c.kustomization("web")
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	c.ready("web", first)
	second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
	c.ready("web", second)
	c.bind("new")
	c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
	c.prunedFrom("old", c.east)

	c.blocked(c.commit(map[string]string{"app/x.yaml": named("d")}), "4 of 4 objects (")
	c.prunedFrom("old", c.east)
	if diff := cmp.Diff(1, len(inventory.Leaving(c.get("web").Status))); diff != "" {
		t.Errorf("what is leaving (-want +got):\n%s", diff)
	}
	fourth := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
	c.ready("web", fourth)
	c.prunedFrom("old", c.east)
	c.apply(c.west, "new", workv1alpha1.ResourceHealthy)
	c.until("old is gone", func() (bool, string) { return c.configMap("old") == nil, "it is there" })
}

// TestOnlyANameLetsGoAtOnce: to allow a revision does not delete anything before it is replaced; to allow a name does.
func TestOnlyANameLetsGoAtOnce(t *testing.T) {
	c := newCarried(newWorld(t))
	first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
	c.kustomization("web")
	c.annotate("web", inventory.AllowPruneAnnotation, "true")
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	c.ready("web", first)
	second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
	c.ready("web", second)
	c.bind("new")
	c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
	c.prunedFrom("old", c.east)

	c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new"), "app/y.yaml": named("e")})
	c.annotate("web", inventory.AllowPruneAnnotation, "configmap/"+c.namespace+"/old")
	c.until("old is gone", func() (bool, string) { return c.configMap("old") == nil, "it is there" })
}

// TestAMissingRightTakesNothing: an account that may not delete an object on the control plane removes it from no
// cluster.
func TestAMissingRightTakesNothing(t *testing.T) {
	c := newCarried(newWorld(t))
	c.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"}})
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "get"}}},
	}
	c.create(role)
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: "tenant"}},
	})
	first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
	c.kustomization("web", func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "tenant" })
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	c.ready("web", first)

	second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
	c.ready("web", second)
	c.bind("new")
	c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
	message := c.awaitReason("web", second, meta.PruneFailedReason)
	if !strings.Contains(message, "cannot delete") {
		t.Errorf("message = %q, want it to name the right that is missing", message)
	}
	c.prunedFrom("old")

	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "delete")
	if err := c.Hub.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	c.prunedFrom("old", c.east)
	c.ready("web", second)
}

// TestSilenceTakesNothing: an object that a cluster refused, or has yet to apply, does not count as applied there
// when the cluster becomes silent.
func TestSilenceTakesNothing(t *testing.T) {
	for name, change := range map[string]func(*kustomizev1.KustomizationSpec){"applied": func(*kustomizev1.KustomizationSpec) {}, "healthy": waiting, "passed": waiting} {
		t.Run(name, func(t *testing.T) {
			c := newCarried(newWorld(t))
			c.tellWhereRunsAre()
			c.kustomization("web", change)
			if name == "passed" {
				c.annotate("web", health.MaxUnreachableAnnotation, "1")
			}
			first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old", "hub")})
			c.bind("old")
			c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
			c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
			c.ready("web", first)
			second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
			c.bind("new")
			c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
			c.prunedFrom("old", c.east)
			if c.configMap("hub") == nil {
				t.Error("what is on the control plane alone is gone while it is known that not all is replaced")
			}

			silent := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.west}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
			c.create(silent)
			silent.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: metav1.Now()}}
			if err := c.Hub.Status().Update(t.Context(), silent); err != nil {
				t.Fatal(err)
			}
			c.seen(silent)
			c.annotate("web", meta.ReconcileRequestAnnotation, "now")
			c.until("it was looked at, and what is on the control plane alone is gone", func() (bool, string) {
				return c.configMap("hub") == nil && c.get("web").Status.LastHandledReconcileAt == "now", ""
			})
			c.prunedFrom("old", c.east)
			if name != "healthy" {
				runs := c.builds.runs()
				c.annotate("web", meta.ReconcileRequestAnnotation, "again")
				c.until("it was looked at again", func() (bool, string) { return c.get("web").Status.LastHandledReconcileAt == "again", "" })
				if got := c.builds.runs() - runs; got != 1 {
					t.Errorf("%d builds for one request", got)
				}
				if message := c.awaitReason("web", second, meta.ReconciliationSucceededReason); !strings.HasSuffix(message, "stays until all of it is applied in its cluster: ConfigMap/"+c.namespace+"/old") {
					t.Errorf("message = %q", message)
				}
			}

			silent.Status.Conditions[0].Status, silent.Status.Conditions[0].Reason = metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason
			if err := c.Hub.Status().Update(t.Context(), silent); err != nil {
				t.Fatal(err)
			}
			c.apply(c.west, "new", workv1alpha1.ResourceHealthy)
			c.until("old is gone", func() (bool, string) {
				return c.configMap("old") == nil, c.standing("old", "new")
			})
			c.ready("web", second)
		})
	}
}

// TestALostRightTakesNothing: if the account loses the right to delete while an object is removed cluster by cluster,
// the object stays where it still is.
func TestALostRightTakesNothing(t *testing.T) {
	c := newCarried(newWorld(t))
	first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
	c.kustomization("web")
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	c.ready("web", first)
	second := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "new")})
	c.bind("new")
	c.apply(c.east, "new", workv1alpha1.ResourceHealthy)
	c.prunedFrom("old", c.east)

	c.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"}})
	c.create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch", "get"}}},
	})
	c.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: "tenant"}},
	})
	c.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "tenant" })
	c.apply(c.west, "new", workv1alpha1.ResourceHealthy)
	c.awaitReason("web", second, meta.PruneFailedReason)
	c.prunedFrom("old", c.east)
	if got := inventory.Leaving(c.get("web").Status); len(got) != 1 {
		t.Errorf("the status says that %v is leaving", got)
	}
}

// TestWhatOptedOutIsNotAwaited: a run does not wait for an object that opted out of pruning, as nothing removes it.
func TestWhatOptedOutIsNotAwaited(t *testing.T) {
	c := newCarried(newWorld(t))
	first := c.commit(map[string]string{"app/x.yaml": named("a", "b", "c", "old")})
	c.kustomization("web")
	c.bind("old")
	c.apply(c.east, "old", workv1alpha1.ResourceHealthy)
	c.apply(c.west, "old", workv1alpha1.ResourceHealthy)
	c.ready("web", first)
	c.edit(c.configMap("old"), "disabled", "metadata", "annotations", "kustomize.toolkit.fluxcd.io/prune")
	ks := c.ready("web", c.commit(map[string]string{"app/x.yaml": named("a", "b", "c")}))
	if removed := inventory.Removed(ks.Status); len(removed) > 0 || c.configMap("old") == nil {
		t.Errorf("the status says that clusters have yet to remove %v; it is %v", removed, c.configMap("old"))
	}
}
