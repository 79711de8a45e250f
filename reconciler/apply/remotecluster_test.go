package apply_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/remotecluster"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// loopback lets clusters be on this machine.
func loopback(t testing.TB) egress.Dialer {
	t.Helper()
	networks, err := egress.ParseNetworks([]string{"127.0.0.0/8", "::1/128"})
	if err != nil {
		t.Fatal(err)
	}
	return egress.Dialer{Networks: networks}
}

// elsewhere is a cluster outside of the fleet, with the namespace of a world in it.
type elsewhere struct {
	*world
	cluster *servertest.Env
}

// leads makes the Secret prod, which leads a world's Kustomizations to a cluster.
func leads(w *world, cluster *servertest.Env) elsewhere {
	w.t.Helper()
	out := elsewhere{w, cluster}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	if err := cluster.Hub.Create(w.t.Context(), ns); err != nil {
		w.t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod", Labels: map[string]string{meta.LabelKeyWatch: "Enabled"}},
		Data:       map[string][]byte{"value": kubeconfig},
	})
	return out
}

// toProd leads a Kustomization to the cluster of the Secret prod.
func toProd(spec *kustomizev1.KustomizationSpec) {
	spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "prod"}}
}

// has returns the names of the ConfigMaps of Git in the cluster.
func (e elsewhere) has() []string {
	e.t.Helper()
	return configNames(e.t, e.cluster.Hub, e.namespace)
}

// here returns those on the control plane.
func (e elsewhere) here() []string {
	e.t.Helper()
	return configNames(e.t, e.Hub, e.namespace)
}

func configNames(t testing.TB, server client.Client, namespace string) []string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := server.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range list.Items {
		if strings.HasPrefix(c.Name, "config-") {
			out = append(out, c.Name+"="+c.Data["number"])
		}
	}
	return out
}

// ends deletes a Kustomization as a user does, without waiting.
func (e elsewhere) ends(name string) {
	e.t.Helper()
	if err := e.Hub.Delete(e.t.Context(), e.get(name)); err != nil {
		e.t.Fatal(err)
	}
}

// gone waits until a Kustomization is gone.
func (e elsewhere) gone(name string) {
	e.t.Helper()
	e.until(name+" gone", func() (bool, string) {
		var ks kustomizev1.Kustomization
		err := e.Hub.Get(e.t.Context(), client.ObjectKey{Namespace: e.namespace, Name: name}, &ks)
		return apierrors.IsNotFound(err), fmt.Sprintf("%v %+v", err, ks.Status.Conditions)
	})
}

func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestClustersOutsideOfTheFleet: with spec.kubeConfig a Kustomization does in another cluster what it does here without.
func TestClustersOutsideOfTheFleet(t *testing.T) {
	cluster := servertest.New(t)
	for name, test := range map[string]func(*testing.T, elsewhere){
		"it is applied, kept, pruned and deleted there":  itIsCaredForThere,
		"a revision that removes too much is refused":    theBrakeHoldsThere,
		"health is what the object's status says":        healthIsWaitedForThere,
		"another place leaves what is in the one before": whatStaysIsReported,
		"without the Secret the end is waited for":       theEndWaitsForTheSecret,
	} {
		t.Run(name, func(t *testing.T) { test(t, leads(newWorld(t), cluster)) })
	}
	t.Run("an account of that cluster acts", func(t *testing.T) { anAccountActsThere(t, leads(newTenantWorld(t), cluster)) })
	t.Run("the control plane itself is no such cluster", func(t *testing.T) { itIsNotTheHub(t) })
}

func itIsCaredForThere(t *testing.T, e elsewhere) {
	first := e.commit(map[string]string{"app/x.yaml": configMaps(8)})
	e.kustomization("web", toProd)
	ks := e.ready("web", first)
	if ready := ks.Status.Conditions[0]; ready.Message != "Applied revision: "+first+" in the cluster of the Secret prod" {
		t.Errorf("Ready says %q", ready.Message)
	}
	if len(e.has()) != 8 || len(inventoryOf(ks)) != 8 || inventory.PlaceOf(ks.Status).Server != e.cluster.Config.Host {
		t.Errorf("the cluster has %v, and the status %+v", e.has(), ks.Status)
	}
	same(t, "here", nil, e.here())

	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "config-00"}}
	if err := e.cluster.Hub.Patch(t.Context(), edited, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"number":"7"}}`))); err != nil {
		t.Fatal(err)
	}
	e.annotate("web", meta.ReconcileRequestAnnotation, "now")
	e.until("kept", func() (bool, string) { return e.has()[0] == "config-00=0", fmt.Sprint(e.has()) })

	e.ready("web", e.commit(map[string]string{"app/x.yaml": configMaps(7)}))
	if len(e.has()) != 7 {
		t.Errorf("after one left, the cluster has %v", e.has())
	}
	e.ends("web")
	e.gone("web")
	same(t, "after the end", nil, e.has())
}

func theBrakeHoldsThere(t *testing.T, e elsewhere) {
	first := e.commit(map[string]string{"app/x.yaml": configMaps(8)})
	e.kustomization("web", toProd)
	e.ready("web", first)
	next := e.commit(map[string]string{"app/x.yaml": configMaps(1)})
	message := e.awaitReason("web", next, inventory.ReasonPruneBlocked)
	if !strings.HasPrefix(message, "in the cluster of the Secret prod: revision "+next+" would remove 7 of 8 objects") {
		t.Errorf("Ready says %q", message)
	}
	if len(e.has()) != 8 {
		t.Errorf("the cluster has %v", e.has())
	}
	e.annotate("web", inventory.AllowPruneAnnotation, next)
	e.ready("web", next)
	same(t, "once it is allowed", []string{"config-00=0"}, e.has())
}

func healthIsWaitedForThere(t *testing.T, e elsewhere) {
	revision := e.commit(map[string]string{"app/x.yaml": fmt.Sprintf(deployment, 1, "web")})
	e.kustomization("web", toProd, func(spec *kustomizev1.KustomizationSpec) { spec.Wait = true })
	if message := e.awaitReason("web", revision, meta.ProgressingReason); message != "Applying revision "+revision && !strings.HasPrefix(message, "Running health checks for revision "+revision+" in the cluster of the Secret prod with a timeout") {
		t.Errorf("Ready says %q", message)
	}
	key := client.ObjectKey{Namespace: e.namespace, Name: "web"}
	e.until("applied", func() (bool, string) {
		err := e.cluster.Hub.Get(t.Context(), key, &appsv1.Deployment{})
		return err == nil, fmt.Sprint(err)
	})
	runs := `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "web"}}
	if err := e.cluster.Hub.Status().Patch(t.Context(), web, client.RawPatch("application/merge-patch+json", []byte(runs))); err != nil {
		t.Fatal(err)
	}
	e.ready("web", revision)
}

func whatStaysIsReported(t *testing.T, e elsewhere) {
	revision := e.commit(map[string]string{"app/x.yaml": configMaps(1)})
	e.kustomization("web")
	e.ready("web", revision)
	e.change("web", toProd)
	e.until("there", func() (bool, string) { return len(e.has()) == 1, fmt.Sprint(e.has()) })
	e.ready("web", revision)
	same(t, "here", []string{"config-00=0"}, e.here())
	e.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.KubeConfig = nil })
	e.until("back", func() (bool, string) {
		ks := e.get("web")
		return inventory.PlaceOf(ks.Status) == (inventory.Place{}), fmt.Sprintf("%+v", ks.Status)
	})
	e.ready("web", revision)
	same(t, "there", []string{"config-00=0"}, e.has())
	var reported []string
	for _, event := range e.events.about("web") {
		if strings.HasPrefix(event, remotecluster.ReasonLeftBehind+": ") {
			reported = append(reported, strings.ReplaceAll(event, e.namespace, "NAMESPACE"))
		}
	}
	const to = "delete them there, or let another Kustomization take them"
	same(t, "told", []string{
		"LeftBehind: 1 of its objects (ConfigMap/NAMESPACE/config-00) stay on the control plane, and wherever policies carry them, as this Kustomization applies in the cluster of the Secret prod from now on: " + to,
		"LeftBehind: 1 of its objects (ConfigMap/NAMESPACE/config-00) stay in the cluster of the Secret prod, as this Kustomization applies on the control plane from now on: " + to,
	}, reported)
}

func theEndWaitsForTheSecret(t *testing.T, e elsewhere) {
	revision := e.commit(map[string]string{"app/x.yaml": configMaps(1)})
	e.kustomization("web", toProd)
	e.ready("web", revision)
	if err := e.Hub.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "prod"}}); err != nil {
		t.Fatal(err)
	}
	message := e.awaitReason("web", revision, refusals.InvalidKubeConfig)
	missing := "the Secret " + e.namespace + "/prod does not exist: create it, with a kubeconfig under the key value, or correct spec.kubeConfig.secretRef"
	if message != missing {
		t.Errorf("Ready says %q, want %q", message, missing)
	}
	e.ends("web")
	message = e.awaitReason("web", revision, meta.PruneFailedReason)
	if want := missing + "; 1 of its objects (ConfigMap/" + e.namespace + "/config-00) wait to be deleted there: to leave them where they are, set spec.deletionPolicy to Orphan"; message != want {
		t.Errorf("Ready says %q, want %q", message, want)
	}
	e.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.DeletionPolicy = kustomizev1.DeletionPolicyOrphan })
	e.gone("web")
	same(t, "there", []string{"config-00=0"}, e.has())
}

// anAccountActsThere: with spec.serviceAccountName the account of that cluster acts, which has no rights but in its namespace.
func anAccountActsThere(t *testing.T, e elsewhere) {
	revision := e.commit(map[string]string{"app/x.yaml": configMaps(1)})
	e.account("deployer")
	e.kustomization("web", toProd, func(spec *kustomizev1.KustomizationSpec) { spec.ServiceAccountName = "deployer" })
	message := e.awaitReason("web", revision, applier.ReasonForbidden)
	if want := `User "system:serviceaccount:` + e.namespace + `:deployer" cannot get resource "secrets"`; !strings.Contains(message, want) {
		t.Errorf("Ready says %q, want %q", message, want)
	}
	e.allow("deployer", "edit", e.namespace)
	e.until("refused there", func() (bool, string) {
		message = e.awaitReason("web", revision, applier.ReasonForbidden)
		return strings.HasPrefix(message, "in the cluster of the Secret prod: ") && strings.Contains(message, `:deployer" cannot get resource "configmaps"`), message
	})
	if strings.Contains(message, "kubectl") {
		t.Errorf("Ready says %q: what is to be done there is not for this cluster", message)
	}
	grant := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.namespace, Name: "deployer"}},
	}
	if err := e.cluster.Hub.Create(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	e.ready("web", revision)
	same(t, "there", []string{"config-00=0"}, e.has())
	e.ends("web")
	e.gone("web")
	same(t, "after the end", nil, e.has())
}

// itIsNotTheHub: a tenant cannot have the control plane call itself.
func itIsNotTheHub(t *testing.T) {
	w := newWorldReaching(t, func(dialer egress.Dialer, env *servertest.Env) egress.Dialer {
		dialer.Own = []string{strings.TrimPrefix(env.Config.Host, "https://")}
		return dialer
	})
	kubeconfig, err := os.ReadFile(w.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"}, Data: map[string][]byte{"value": kubeconfig}})
	revision := w.commit(map[string]string{"app/x.yaml": configMaps(1)})
	w.kustomization("web", toProd)
	message := w.awaitReason("web", revision, meta.ReconciliationFailedReason)
	if !strings.Contains(message, "leads to the control plane itself") {
		t.Errorf("Ready says %q", message)
	}
	if w.configMap("config-00") != nil {
		t.Error("it was applied")
	}
}
