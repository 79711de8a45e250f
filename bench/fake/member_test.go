package fake_test

import (
	"context"
	"crypto/x509"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/bench/fake"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	managed     = map[string]any{"karmada.io/managed": "true"}
)

const selector = "karmada.io/managed=true"

// member is a client of the only member of a fleet.
type member struct {
	t      *testing.T
	fleet  *fake.Fleet
	config *rest.Config
	client dynamic.Interface
}

func start(t *testing.T) member {
	t.Helper()
	fleet, err := fake.Serve(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	config := &rest.Config{
		Host: fleet.Members[0].Endpoint, BearerToken: fleet.Token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: fleet.CA},
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return member{t, fleet, config, client}
}

func web(labels map[string]any, replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "default", "name": "web", "labels": labels},
		"spec":     map[string]any{"replicas": replicas, "args": []any{"a", "b"}},
	}}
}

func (m member) apply(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := obj.MarshalJSON()
	if err != nil {
		m.t.Fatal(err)
	}
	force := true
	return m.client.Resource(deployments).Namespace(obj.GetNamespace()).
		Patch(m.t.Context(), obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "flotilla", Force: &force})
}

func (m member) mustApply(obj *unstructured.Unstructured) *unstructured.Unstructured {
	m.t.Helper()
	got, err := m.apply(obj)
	if err != nil {
		m.t.Fatal(err)
	}
	return got
}

func (m member) watch(o metav1.ListOptions) watch.Interface {
	m.t.Helper()
	w, err := m.client.Resource(deployments).Watch(m.t.Context(), o)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(w.Stop)
	return w
}

// next returns the next event.
func (m member) next(w watch.Interface) (watch.EventType, *unstructured.Unstructured) {
	m.t.Helper()
	select {
	case e, open := <-w.ResultChan():
		if !open {
			m.t.Fatal("the watch ended")
		}
		obj, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			m.t.Fatalf("%s: %v", e.Type, e.Object)
		}
		return e.Type, obj
	case <-time.After(time.Minute):
		m.t.Fatal("nothing is seen")
		return "", nil
	}
}

func (m member) wants(w watch.Interface, want watch.EventType) *unstructured.Unstructured {
	m.t.Helper()
	got, obj := m.next(w)
	if got != want {
		m.t.Fatalf("saw %s, want %s", got, want)
	}
	return obj
}

func TestApply(t *testing.T) {
	m := start(t)
	first := m.mustApply(web(managed, 2))
	if first.GetUID() == "" || first.GetGeneration() != 1 || first.GetResourceVersion() == "" {
		t.Fatalf("a new object has metadata %v", first.Object["metadata"])
	}
	leaf := map[string]any{}
	entry := first.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
	want := map[string]any{
		"f:metadata": map[string]any{"f:labels": map[string]any{"f:karmada.io/managed": leaf}},
		"f:spec":     map[string]any{"f:replicas": leaf, "f:args": leaf},
	}
	if diff := cmp.Diff(want, entry["fieldsV1"]); diff != "" || entry["manager"] != "flotilla" || entry["operation"] != "Apply" {
		t.Errorf("managed fields of %v (-want +got):\n%s", entry["manager"], diff)
	}

	m.awaitReady(2)
	again := m.mustApply(web(managed, 2))
	if got, want := again.GetUID(), first.GetUID(); got != want || again.GetGeneration() != 1 {
		t.Errorf("the same again is generation %d of %s, want 1 of %s", again.GetGeneration(), got, want)
	}
	second := m.mustApply(web(managed, 3))
	if second.GetUID() != first.GetUID() || second.GetGeneration() != 2 || second.GetResourceVersion() == again.GetResourceVersion() {
		t.Errorf("a change is generation %d, version %s after %s", second.GetGeneration(), second.GetResourceVersion(), again.GetResourceVersion())
	}
	if ready, _, _ := unstructured.NestedInt64(second.Object, "status", "readyReplicas"); ready != 2 {
		t.Errorf("a change answers with %d ready replicas, want the 2 of before", ready)
	}
	m.awaitReady(3)
	fewer := web(managed, 3)
	unstructured.RemoveNestedField(fewer.Object, "spec", "args")
	if _, found, _ := unstructured.NestedSlice(m.mustApply(fewer).Object, "spec", "args"); found {
		t.Error("a field that is not applied any more stays")
	}
}

// awaitReady waits until the Deployment reports so many replicas.
func (m member) awaitReady(n int64) {
	m.t.Helper()
	w := m.watch(metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
	for {
		_, obj := m.next(w)
		if ready, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas"); ready == n {
			return
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	m := start(t)
	const never = "9223372036854775807"
	onlyNew := web(managed, 1)
	onlyNew.SetResourceVersion(never)
	if _, err := m.apply(onlyNew); err != nil {
		t.Fatalf("what is not there is made: %v", err)
	}
	if _, err := m.apply(onlyNew); !apierrors.IsConflict(err) {
		t.Errorf("another version is in the way: %v, want a conflict", err)
	}
	homeless := web(managed, 1)
	homeless.SetNamespace("nowhere")
	_, err := m.apply(homeless)
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details.Kind != "namespaces" {
		t.Errorf("a namespace is missing: %v, want that it is not found", err)
	}
	stranger := rest.CopyConfig(m.config)
	stranger.BearerToken = "guessed"
	if _, err := dynamic.NewForConfigOrDie(stranger).Resource(deployments).List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a stranger gets %v, want to be refused", err)
	}
}

func TestWatch(t *testing.T) {
	m := start(t)
	list, err := m.client.Resource(deployments).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil || len(list.Items) != 0 {
		t.Fatalf("a new member has %d Deployments: %v", len(list.Items), err)
	}
	after := m.watch(metav1.ListOptions{LabelSelector: selector, ResourceVersion: list.GetResourceVersion()})

	m.mustApply(web(nil, 1)) // is not selected
	m.awaitReady(1)
	m.mustApply(web(managed, 1))
	m.wants(after, watch.Added)

	// A later watcher receives what there is, and a bookmark that this is all.
	later := m.watch(metav1.ListOptions{
		LabelSelector: selector, SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	m.wants(later, watch.Added)
	if bookmark := m.wants(later, watch.Bookmark); bookmark.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the end of what there is reads %v", bookmark.Object)
	}
	gone := m.mustApply(web(nil, 1)) // is not selected any more
	m.wants(later, watch.Deleted)
	m.wants(after, watch.Deleted)

	m.mustApply(web(managed, 1))
	m.wants(later, watch.Added)
	wrong := types.UID("another")
	resource := m.client.Resource(deployments).Namespace("default")
	err = resource.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	if !apierrors.IsConflict(err) {
		t.Errorf("the delete of another object gets %v, want a conflict", err)
	}
	uid := gone.GetUID()
	if err := resource.Delete(t.Context(), "web", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		t.Fatal(err)
	}
	m.wants(later, watch.Deleted)
	if _, err := resource.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted is read as %v", err)
	}
}

func TestDiscovery(t *testing.T) {
	m := start(t)
	clients, err := kubernetes.NewForConfig(m.config)
	if err != nil {
		t.Fatal(err)
	}
	aggregated, err := kinds(clients.Discovery().ServerGroupsAndResources())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := kinds(clients.Discovery().WithLegacy().ServerGroupsAndResources())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain, aggregated); diff != "" || !plain["apps/v1 Deployment deployments namespaced=true"] {
		t.Errorf("plain and aggregated discovery differ (-plain +aggregated):\n%s", diff)
	}
	system, err := clients.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil || string(system.UID) != m.fleet.Members[0].ID {
		t.Errorf("the member is %v: %v, want %s", system.UID, err, m.fleet.Members[0].ID)
	}
}

func kinds(_ []*metav1.APIGroup, lists []*metav1.APIResourceList, err error) (map[string]bool, error) {
	out := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			scope := map[bool]string{true: "true", false: "false"}[r.Namespaced]
			out[list.GroupVersion+" "+r.Kind+" "+r.Name+" namespaced="+scope] = true
		}
	}
	return out, err
}

func TestArrived(t *testing.T) {
	m := start(t)
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if at, err := m.fleet.Arrived(soon, "default/web"); err == nil {
		t.Errorf("what was never applied arrived at %v", at)
	}
	before := time.Now()
	m.mustApply(web(managed, 1))
	at, err := m.fleet.Arrived(t.Context(), "default/web")
	if err != nil || at.First != at.Last || at.First.Before(before) || at.Last.After(time.Now()) {
		t.Errorf("arrived at %v: %v, want after %v", at, err, before)
	}
}

func TestServedCertificateIsTheFleets(t *testing.T) {
	m := start(t)
	if !x509.NewCertPool().AppendCertsFromPEM(m.fleet.CA) {
		t.Fatal("the CA cannot be read")
	}
	stranger := rest.CopyConfig(m.config)
	stranger.CAData = nil
	if _, err := dynamic.NewForConfigOrDie(stranger).Resource(deployments).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the member is trusted by those who do not have its CA")
	}
}
