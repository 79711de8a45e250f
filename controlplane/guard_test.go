package controlplane_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// administrator is a client of one who may do everything.
func administrator(t *testing.T, env *servertest.Env) client.Client {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:admin", Groups: []string{"system:masters"}}
	admin, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// A cluster's Works are what runs there: nobody takes them all away by deleting
// their namespace, and it goes when the cluster leaves.
func TestExecutionNamespacesStayWhileTheirClusterLives(t *testing.T) {
	env := shared.Env(t)
	admin := administrator(t, env)
	for _, obj := range guardedCluster("guarded") {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace("guarded")}}
	lacking := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace("never-joined")}}
	if err := env.Hub.Create(t.Context(), lacking); err != nil {
		t.Fatal(err)
	}
	for what, hub := range map[string]client.Client{"an administrator": admin, "a loop": env.Hub} {
		for how, options := range map[string][]client.DeleteOption{
			"": nil, " at once": {client.GracePeriodSeconds(0)}, " in the foreground": {client.PropagationPolicy(metav1.DeletePropagationForeground)}, " in a dry run": {client.DryRunAll},
		} {
			err := hub.Delete(t.Context(), space.DeepCopy(), options...)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "flotilla unjoin guarded") {
				t.Errorf("%s deletes the namespace of a cluster%s: %v", what, how, err)
			}
		}
	}
	if err := admin.Delete(t.Context(), lacking); err != nil {
		t.Errorf("the namespace of a cluster that is gone: %v", err)
	}
	for _, name := range []string{workv1alpha2.NamespaceKarmadaSystem, workv1alpha2.NamespaceKarmadaCluster} {
		if err := admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("an administrator deletes %s: %v", name, err)
		}
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "guarded"}}
	if err := admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.DeletionTimestamp.IsZero() {
		t.Fatalf("the cluster is not leaving: %v", err)
	}
	if err := env.Hub.Delete(t.Context(), space); err != nil {
		t.Errorf("the namespace of a cluster that leaves: %v", err)
	}
	poll(t, "wait until the namespace is gone with all in it", func() bool {
		return apierrors.IsNotFound(env.Hub.Get(t.Context(), client.ObjectKeyFromObject(space), space))
	})
}

// TestNoClusterGoesWhileTheControlPlaneWaits: what runs there would go as soon as somebody
// says to go on, and no plan of that would tell. Where nobody is reached, nothing goes.
func TestNoClusterGoesWhileTheControlPlaneWaits(t *testing.T) {
	env := servertest.New(t)
	admin := administrator(t, env)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	hold := func(h *hubclaim.Hold) {
		t.Helper()
		text := hubclaim.History{Hold: h}.Encode()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.HistoryAnnotation, text))
		if err := env.Hub.Patch(t.Context(), system.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"there", "away", "spared"} {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
		if err := env.Hub.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		status := metav1.ConditionTrue
		if name == "away" {
			status = metav1.ConditionFalse
		}
		cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: "Said", LastTransitionTime: metav1.Now()}}
		if err := env.Hub.Status().Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	hold(&hubclaim.Hold{Since: time.Now(), Clusters: []string{"there", "away"}})
	gone := func(name string) error {
		return admin.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.DryRunAll)
	}
	if err := gone("there"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "flotilla resume hub") {
		t.Errorf("a cluster goes while all wait: %v", err)
	}
	if err := gone("spared"); !apierrors.IsForbidden(err) {
		t.Errorf("another one: %v", err)
	}
	if err := gone("away"); err != nil {
		t.Errorf("a cluster that is not ready: %v", err)
	}
	hold(&hubclaim.Hold{Since: time.Now(), Clusters: []string{"there"}})
	if err := gone("spared"); err != nil {
		t.Errorf("a cluster that does not wait: %v", err)
	}
	hold(nil)
	if err := gone("there"); err != nil {
		t.Errorf("nobody waits: %v", err)
	}
}

// guardedCluster is the namespace of a Cluster, and the Cluster, which waits for
// somebody to let it go.
func guardedCluster(name string) []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(name)}},
		&clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}},
			Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
		},
	}
}

// Works that bindings and namespaces have in a cluster are taken down there when
// they go: only who wrote one by hand deletes it.
func TestWorksThatAreNeededAreNotDeleted(t *testing.T) {
	env := shared.Env(t)
	admin := administrator(t, env)
	home := env.Namespace(t)
	for _, obj := range guardedCluster("needy") {
		remove(t, env.Hub, obj.DeepCopyObject().(client.Object))
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	ns := &corev1.Namespace{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: home}, ns); err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "c-configmap"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: home, Name: "c"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "needy"}},
		},
	}
	remove(t, env.Hub, b.DeepCopy())
	if err := env.Hub.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	id := b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	of := func(name, id string) *workv1alpha1.Work {
		w := plainWork("needy", name)
		w.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: id}
		w.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: home, workv1alpha2.ResourceBindingNameAnnotationKey: b.Name}
		return w
	}
	owned := plainWork("needy", "namespace")
	owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(ns, corev1.SchemeGroupVersion.WithKind("Namespace"))}
	works := map[string]*workv1alpha1.Work{"bound": of("bound", id), "left over": of("left-over", "another"), "of a namespace": owned, "hand-written": plainWork("needy", "by-hand")}
	for _, w := range works {
		remove(t, env.Hub, w.DeepCopy())
		if err := env.Hub.Create(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]bool{"bound": true, "of a namespace": true}
	for what, w := range works {
		if err := admin.Delete(t.Context(), w.DeepCopy(), client.DryRunAll); apierrors.IsForbidden(err) != refused[what] {
			t.Errorf("an administrator deletes a Work that is %s: %v", what, err)
		}
		if err := env.Hub.Delete(t.Context(), w.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("a loop deletes a Work that is %s: %v", what, err)
		}
	}
	err := admin.DeleteAllOf(t.Context(), &workv1alpha1.Work{}, client.InNamespace(owned.Namespace))
	if !apierrors.IsForbidden(err) {
		t.Errorf("an administrator deletes all Works of a cluster: %v", err)
	}
	for what, w := range works {
		if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(w), &workv1alpha1.Work{}); refused[what] && err != nil {
			t.Errorf("after all were deleted, the Work that is %s: %v", what, err)
		}
	}
	b.Spec.Clusters = nil
	if err := env.Hub.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), works["bound"]); err != nil {
		t.Errorf("a Work in a cluster that its binding has left: %v", err)
	}
}

// plainWork is a Work that nobody but its writer knows.
func plainWork(cluster, name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{
			RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}`)},
		}}}},
	}
}

// With the definition of a kind all objects of the kind go: policies, sources,
// and what they brought to clusters.
func TestTheControlPlanesOwnKindsAreNotDeleted(t *testing.T) {
	env := shared.Env(t)
	admin := administrator(t, env)
	for _, name := range []string{"propagationpolicies.policy.karmada.io", "kustomizations.kustomize.toolkit.fluxcd.io"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := admin.Delete(t.Context(), crd, client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("an administrator deletes the kind %s: %v", name, err)
		}
	}
}
