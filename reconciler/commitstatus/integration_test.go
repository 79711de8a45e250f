package commitstatus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/commitstatus"
	"github.com/flotilla-io/flotilla/reconciler/commitstatus/poster"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

const (
	token  = "CANARY-token"
	first  = "main@sha1:1111111111111111111111111111111111111111"
	second = "main@sha1:2222222222222222222222222222222222222222"
)

// forgeServer is a forge that takes statuses as Gitea does.
type forgeServer struct {
	*httptest.Server
	mu       sync.Mutex
	answer   int
	messages []string
	tries    int
}

func newForge(t testing.TB) *forgeServer {
	t.Helper()
	f := &forgeServer{answer: http.StatusCreated}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *forgeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var status struct{ State, Context, Description string }
	err := json.NewDecoder(r.Body).Decode(&status)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	switch {
	case err != nil, r.Method != http.MethodPost, !strings.HasPrefix(r.URL.Path, "/api/v1/repos/acme/fleet/statuses/"):
		w.WriteHeader(http.StatusTeapot)
	case r.Header.Get("Authorization") != "token "+token:
		w.WriteHeader(http.StatusUnauthorized)
	default:
		if f.answer == http.StatusCreated {
			messages := path.Base(r.URL.Path)[:4] + " " + status.State + ": " + status.Description
			if strings.HasPrefix(status.Context, "flotilla/") {
				messages = status.Context + " " + messages
			}
			f.messages = append(f.messages, messages)
		}
		w.WriteHeader(f.answer)
		fmt.Fprintf(w, `{"message": "I was given %s"}`, r.Header.Get("Authorization"))
	}
}

func (f *forgeServer) answers(code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = code
}

func (f *forgeServer) posts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.messages...)
}

type world struct {
	*servertest.Env
	t         testing.TB
	namespace string
	cache     client.Reader // what the loop sees
	templates *templatestore.Store
	stop      func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{Env: shared.Env(t), t: t}
	w.namespace = w.Namespace(t)
	w.start()
	return w
}

type noEvents struct{}

func (noEvents) Event(runtime.Object, string, string, string) {}

func (w *world) start() {
	w.t.Helper()
	mgr, err := hub.NewManager(w.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		w.t.Fatal(err)
	}
	templates, err := templatestore.New(w.Config, templatestore.Options{Scheme: scheme.New(), Mapper: mgr.GetRESTMapper(), Log: logr.Discard()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.cache, w.templates = mgr.GetClient(), templates
	templates.Want("test", configMap)
	if err := mgr.Add(templates); err != nil {
		w.t.Fatal(err)
	}
	if err := bindings.Register(w.t.Context(), mgr); err != nil {
		w.t.Fatal(err)
	}
	reader := health.New(health.Deps{Hub: mgr.GetClient(), Live: mgr.GetAPIReader(), Templates: templates})
	// News about a commit that stays pending waits for longer than a test takes.
	if err := commitstatus.New(mgr.GetClient(), reader, noEvents{}, commitstatus.Options{Every: time.Hour}).Register(mgr); err != nil {
		w.t.Fatal(err)
	}
	if err := commitstatus.NewSources(mgr.GetClient(), noEvents{}, commitstatus.Options{Every: time.Hour}).Register(mgr); err != nil {
		w.t.Fatal(err)
	}
	options := poster.Options{
		Every: time.Hour, FirstPause: 200 * time.Millisecond, LastPause: time.Second,
		Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	}
	if err := poster.New(mgr.GetClient(), mgr.GetAPIReader(), options).Register(mgr); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("manager: %v", err)
		}
	})
	w.t.Cleanup(w.stop)
	w.until("watching templates", func() (bool, string) { return templates.State(configMap) == templatestore.Synced, "" })
}

// seen waits until the loop knows an object as it is here, or a later version:
// kinds are watched apart, and one may be shown later than another that was
// written after it.
func (w *world) seen(obj client.Object) {
	w.t.Helper()
	cached := obj.DeepCopyObject().(client.Object)
	w.until("seen "+obj.GetName(), func() (bool, string) {
		if err := w.cache.Get(w.t.Context(), client.ObjectKeyFromObject(obj), cached); err != nil {
			return false, err.Error()
		}
		return !writecache.Older(cached.GetResourceVersion(), obj.GetResourceVersion()), cached.GetResourceVersion()
	})
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if obj.GetNamespace() == "" {
		obj.SetNamespace(w.namespace)
	}
	if err := w.Hub.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// provider creates a Provider of the forge and an Alert that sends it all
// Kustomizations.
func (w *world) provider(name, address string) {
	w.t.Helper()
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": token}})
	w.create(&notificationv1beta3.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       notificationv1beta3.ProviderSpec{Type: "gitea", Address: address + "/acme/fleet", SecretRef: &meta.LocalObjectReference{Name: name}},
	})
	w.create(&notificationv1beta3.Alert{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: notificationv1beta3.AlertSpec{
			ProviderRef:  meta.LocalObjectReference{Name: name},
			EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}},
		},
	})
}

// applied makes a Kustomization that says it has applied a revision with one
// ConfigMap, which a policy carries to two clusters.
func (w *world) applied(revision string) {
	w.t.Helper()
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: inventory.OwnerLabels(client.ObjectKey{Namespace: w.namespace, Name: "shop"})}})
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: kustomizev1.KustomizationSpec{
			Interval: metav1.Duration{Duration: time.Hour}, Prune: true,
			SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"},
		},
	}
	w.create(ks)
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.BindingName("ConfigMap", "web")},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: w.cluster("east")}, {Name: w.cluster("west")}},
		},
	}
	w.create(binding)
	w.seen(binding)
	w.until("seen the template", func() (bool, string) {
		_, presence, err := w.templates.Get(w.t.Context(), templatestore.Key{GroupVersionKind: configMap, Namespace: w.namespace, Name: "web"})
		return presence == templatestore.Present, fmt.Sprint(presence, err)
	})
	w.says(revision, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+revision)
}

// cluster returns a name that no other test uses.
func (w *world) cluster(name string) string { return name + strings.TrimPrefix(w.namespace, "t-") }

// says sets the Kustomization's status.
func (w *world) says(revision string, ready metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{}
	if err := w.Hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "shop"}, ks); err != nil {
		w.t.Fatal(err)
	}
	id := inventory.ID{Namespace: w.namespace, Name: "web", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: id, Version: "v1"}})
	ks.Status.LastAttemptedRevision = revision
	if ready == metav1.ConditionTrue {
		ks.Status.LastAppliedRevision = revision
	}
	apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{Type: meta.ReadyCondition, Status: ready, Reason: reason, Message: message})
	if err := w.Hub.Status().Update(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
}

// runs reports that a cluster runs the template healthily.
func (w *world) runs(cluster string) {
	w.t.Helper()
	namespace := workv1alpha2.ExecutionNamespace(w.cluster(cluster))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := w.Hub.Create(w.t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	binding := &workv1alpha2.ResourceBinding{}
	if err := w.Hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: workv1alpha2.BindingName("ConfigMap", "web")}, binding); err != nil {
		w.t.Fatal(err)
	}
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: workv1alpha2.WorkName("ConfigMap", "web", w.namespace),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: binding.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{
			{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"` + w.namespace + `"}}`)}},
		}}},
	}
	w.create(work)
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful", LastTransitionTime: metav1.Now()}}
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: w.namespace, Name: "web"},
		Health:     workv1alpha1.ResourceHealthy,
	}}
	if err := w.Hub.Status().Update(w.t.Context(), work); err != nil {
		w.t.Fatal(err)
	}
	w.seen(work)
	// The binding's status follows, which is what wakes the loop.
	binding.Status.AggregatedStatus = append(binding.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: w.cluster(cluster), Applied: true, Health: workv1alpha2.ResourceHealthy})
	if err := w.Hub.Status().Update(w.t.Context(), binding); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) until(what string, holds func() (bool, string)) {
	w.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		ok, seen := holds()
		last = seen
		return ok, nil
	})
	if err != nil {
		w.t.Fatalf("never %s; last seen: %s", what, last)
	}
}

// reported waits until exactly this was posted to the forge.
func (w *world) reported(f *forgeServer, want ...string) {
	w.t.Helper()
	for i := range want {
		want[i] = strings.NewReplacer("EAST", w.cluster("east"), "WEST", w.cluster("west"), "NS", w.namespace).Replace(want[i])
	}
	w.until(fmt.Sprintf("told %q", want), func() (bool, string) {
		diff := cmp.Diff(want, f.posts())
		return diff == "", diff
	})
}

func (w *world) statuses() []gitopsv1alpha1.CommitStatus {
	w.t.Helper()
	var list gitopsv1alpha1.CommitStatusList
	if err := w.Hub.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// synced waits until the only CommitStatus has a condition Synced with the
// reason, and returns it.
func (w *world) synced(provider, reason string) gitopsv1alpha1.CommitStatus {
	w.t.Helper()
	var found gitopsv1alpha1.CommitStatus
	w.until(provider+": "+reason, func() (bool, string) {
		for _, cs := range w.statuses() {
			c := apimeta.FindStatusCondition(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
			if cs.Spec.ProviderRef.Name == provider && c != nil && c.Reason == reason && c.ObservedGeneration == cs.Generation {
				found = cs
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", w.statuses())
	})
	return found
}

func TestACommitCarriesTheOutcome(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	w.applied(first)
	pending := "1111 pending: 0/2 clusters ready: EAST waits for ConfigMap NS/web: not sent yet"
	w.reported(f, pending)
	w.runs("east")
	w.runs("west")
	w.reported(f, pending, "1111 success: 2/2 clusters ready")
	cs := w.synced("forge", gitopsv1alpha1.CommitStatusReasonPosted)
	if want := "kustomization/shop/"; !strings.HasPrefix(cs.Spec.Context, want) {
		t.Errorf("context = %q, want it to begin with %q", cs.Spec.Context, want)
	}

	before := w.QuietRevision(t)
	w.stop()
	w.start()
	w.QuietRevision(t)
	for _, written := range w.Written(t, before) {
		if strings.Contains(written, w.namespace) {
			t.Errorf("a restart wrote %s", written)
		}
	}
	w.reported(f, pending, "1111 success: 2/2 clusters ready")
}

// TestASilentCluster: what was heard last is not what is.
func TestASilentCluster(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	west := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: w.cluster("west")}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	w.create(west)
	t.Cleanup(func() { _ = w.Hub.Delete(context.WithoutCancel(t.Context()), west) })
	ready := func(status metav1.ConditionStatus, reason string, since time.Time) {
		west.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since)}}
		if err := w.Hub.Status().Update(t.Context(), west); err != nil {
			t.Fatal(err)
		}
	}
	since := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ready(metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason, since)
	w.applied(first)
	w.runs("east")
	w.runs("west")
	w.until("told success", func() (bool, string) {
		posts := f.posts()
		return slices.Contains(posts, "1111 success: 2/2 clusters ready"), fmt.Sprint(posts)
	})
	before := f.posts()
	ready(metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason, since.Add(time.Hour))
	w.reported(f, append(slices.Clone(before), "1111 pending: 1/2 clusters ready: WEST unreachable since 2026-01-01 13:00 UTC")...)
	ready(metav1.ConditionTrue, clusterv1alpha1.ClusterReadyReason, since.Add(2*time.Hour))
	w.reported(f, append(slices.Clone(before), "1111 pending: 1/2 clusters ready: WEST unreachable since 2026-01-01 13:00 UTC", "1111 success: 2/2 clusters ready")...)
}

// TestWhatIsPendingIsClosed: a commit that nobody works on any more is not pending for ever.
func TestWhatIsPendingIsClosed(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	w.applied(first)
	messages := []string{"1111 pending: 0/2 clusters ready: EAST waits for ConfigMap NS/web: not sent yet"}
	w.reported(f, messages...)
	w.says(second, metav1.ConditionFalse, meta.DependencyNotReadyReason, "dependency base is not ready")
	messages = append(messages, "1111 failure: superseded by 22222222", "2222 pending: dependency base is not ready")
	w.reported(f, messages...)
	suspend := func(suspended bool) {
		t.Helper()
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shop"}}
		if err := w.Hub.Patch(t.Context(), ks, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"suspend":%v}}`, suspended))); err != nil {
			t.Fatal(err)
		}
	}
	suspend(true)
	messages = append(messages, "2222 failure: not applied: the Kustomization is suspended")
	w.reported(f, messages...)
	suspend(false)
	messages = append(messages, "2222 pending: dependency base is not ready")
	w.reported(f, messages...)
	if err := w.Hub.Delete(t.Context(), &notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forge"}}); err != nil {
		t.Fatal(err)
	}
	w.reported(f, append(messages, "2222 failure: nothing more is told: what it is about is gone, or the Alert that told of it")...)
	w.until("the CommitStatus is gone", func() (bool, string) { return len(w.statuses()) == 0, fmt.Sprint(w.statuses()) })
}

// TestARemoval: what a commit removes runs on in a cluster that is away,
// and what only says that it was of this Kustomization is none of its business.
func TestARemoval(t *testing.T) {
	for name, record := range map[string]func(*kustomizev1.KustomizationStatus, []inventory.ID, bool){
		"gone": inventory.RecordRemoved,
		"kept": func(status *kustomizev1.KustomizationStatus, ids []inventory.ID, checked bool) {
			inventory.RecordLeaving(status, ids, nil, checked)
			for _, id := range ids {
				status.Inventory.Entries = append(status.Inventory.Entries, kustomizev1.ResourceRef{ID: id.String(), Version: "v1"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) { removal(t, record) })
	}
}

func removal(t *testing.T, record func(*kustomizev1.KustomizationStatus, []inventory.ID, bool)) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	w.applied(first)
	w.runs("east")
	w.runs("west")
	w.until("told success", func() (bool, string) {
		posts := f.posts()
		return slices.Contains(posts, "1111 success: 2/2 clusters ready"), fmt.Sprint(posts)
	})
	before := f.posts()
	old, foreign := w.leaves("west", "old", "shop"), w.leaves("east", "foreign", "other")
	w.removed(record, second, "old", "foreign")
	messages := append(slices.Clone(before), "2222 pending: 1/2 clusters ready: WEST waits for ConfigMap NS/old: not removed yet")
	w.reported(f, messages...)
	w.gone(foreign)
	w.gone(old)
	w.reported(f, append(messages, "2222 success: 2/2 clusters ready")...)
}

// leaves makes a Work that is being deleted of a ConfigMap of a Kustomization.
func (w *world) leaves(cluster, name, owner string) *workv1alpha1.Work {
	w.t.Helper()
	labels, err := json.Marshal(inventory.OwnerLabels(client.ObjectKey{Namespace: w.namespace, Name: owner}))
	if err != nil {
		w.t.Fatal(err)
	}
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace(w.cluster(cluster)), Name: workv1alpha2.WorkName("ConfigMap", name, w.namespace), Finalizers: []string{"example.com/away"},
			Labels:      map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: name},
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotationKey: w.namespace, workv1alpha2.ResourceBindingNameAnnotationKey: workv1alpha2.BindingName("ConfigMap", name)},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{
			{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,"labels":%s}}`, name, w.namespace, labels)}},
		}}},
	}
	w.create(work)
	if err := w.Hub.Delete(w.t.Context(), work); err != nil {
		w.t.Fatal(err)
	}
	w.seen(work)
	return work
}

// gone ends a Work that is being deleted.
func (w *world) gone(work *workv1alpha1.Work) {
	w.t.Helper()
	if err := w.Hub.Patch(w.t.Context(), work, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		w.t.Fatal(err)
	}
}

// removed has the Kustomization say that it has applied a revision that left out ConfigMaps.
func (w *world) removed(record func(*kustomizev1.KustomizationStatus, []inventory.ID, bool), revision string, names ...string) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{}
	if err := w.Hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "shop"}, ks); err != nil {
		w.t.Fatal(err)
	}
	var ids []inventory.ID
	for _, name := range names {
		ids = append(ids, inventory.ID{Namespace: w.namespace, Name: name, GroupKind: configMap.GroupKind()})
	}
	ks.Status.History = meta.History{{Digest: "sha256:0", FirstReconciled: metav1.Now(), LastReconciled: metav1.Now(), LastReconciledStatus: "ReconciliationSucceeded", TotalReconciliations: 1}}
	record(&ks.Status, ids, true)
	ks.Status.LastAttemptedRevision, ks.Status.LastAppliedRevision = revision, revision
	if err := w.Hub.Status().Update(w.t.Context(), ks); err != nil {
		w.t.Fatal(err)
	}
}

func TestASupersededCommitIsClosed(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	w.applied(first)
	pending := ": 0/2 clusters ready: EAST waits for ConfigMap NS/web: not sent yet"
	w.reported(f, "1111 pending"+pending)
	w.says(second, metav1.ConditionTrue, meta.ReconciliationSucceededReason, "Applied revision: "+second)
	w.reported(f, "1111 pending"+pending, "1111 failure: superseded by 22222222", "2222 pending"+pending)
	w.says(second, metav1.ConditionFalse, "PruneBlocked", "revision would remove all:\nnothing was applied")
	w.reported(f, "1111 pending"+pending, "1111 failure: superseded by 22222222", "2222 pending"+pending,
		"2222 failure: PruneBlocked: revision would remove all: nothing was applied")
	w.says(first, metav1.ConditionFalse, "PruneBlocked", "x")
	w.reported(f, "1111 pending"+pending, "1111 failure: superseded by 22222222", "2222 pending"+pending,
		"2222 failure: PruneBlocked: revision would remove all: nothing was applied", "1111 failure: PruneBlocked: x")
}

// A commit because of which one that is being deleted would remove what was to change hands has failed.
func TestAHeldDeletion(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	w.provider("forge", f.URL)
	w.applied(first)
	pending := "1111 pending: 0/2 clusters ready: EAST waits for ConfigMap NS/web: not sent yet"
	w.reported(f, pending)
	key := client.ObjectKey{Namespace: w.namespace, Name: "shop"}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	finalizers := func(ctx context.Context, names string) error {
		return w.Hub.Patch(ctx, ks, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+names+`}}`)))
	}
	if err := finalizers(t.Context(), `["flotilla.io/test"]`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := finalizers(context.WithoutCancel(t.Context()), "null"); err != nil {
			t.Error(err)
		}
	})
	if err := w.Hub.Delete(t.Context(), ks); err != nil {
		t.Fatal(err)
	}
	if err := w.Hub.Get(t.Context(), key, ks); err != nil {
		t.Fatal(err)
	}
	ks.Status.LastAttemptedRevision = second
	apimeta.SetStatusCondition(&ks.Status.Conditions, metav1.Condition{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: "PruneBlocked", Message: "it would remove all", ObservedGeneration: ks.Generation})
	if err := w.Hub.Status().Update(t.Context(), ks); err != nil {
		t.Fatal(err)
	}
	w.reported(f, pending, "1111 failure: superseded by 22222222", "2222 failure: PruneBlocked: it would remove all")
}

func TestAForgeThatIsDownDelaysOnlyItself(t *testing.T) {
	w := newWorld(t)
	down, up := newForge(t), newForge(t)
	down.answers(http.StatusBadGateway)
	w.provider("down", down.URL)
	w.provider("up", up.URL)
	w.applied(first)
	w.runs("east")
	w.runs("west")
	w.until("success told", func() (bool, string) {
		posts := up.posts()
		return len(posts) > 0 && strings.Contains(posts[len(posts)-1], "success"), fmt.Sprint(posts)
	})
	w.until("success to be told to both", func() (bool, string) {
		statuses := w.statuses()
		reported := len(statuses) == 2
		for _, cs := range statuses {
			reported = reported && cs.Spec.State == gitopsv1alpha1.CommitSuccess
		}
		return reported, fmt.Sprintf("%+v", statuses)
	})
	cs := w.synced("down", gitopsv1alpha1.CommitStatusReasonUnreachable)
	if cs.Status.Posted != nil {
		t.Errorf("posted = %+v, want nothing", cs.Status.Posted)
	}
	text, err := json.Marshal(cs)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), token) {
		t.Errorf("the token stands in the status: %s", text)
	}
	down.answers(http.StatusCreated)
	w.reported(down, "1111 success: 2/2 clusters ready")
	w.synced("down", gitopsv1alpha1.CommitStatusReasonPosted)
}

func TestWhatOnlyAPersonCanMend(t *testing.T) {
	w := newWorld(t)
	f := newForge(t)
	f.answers(http.StatusForbidden)
	w.provider("refusing", f.URL)
	w.create(&notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Name: "nosecret"}, Spec: notificationv1beta3.ProviderSpec{
		Type: "gitea", Address: f.URL + "/acme/fleet", SecretRef: &meta.LocalObjectReference{Name: "nothing"},
	}})
	w.create(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Name: "nosecret"}, Spec: notificationv1beta3.AlertSpec{
		ProviderRef:  meta.LocalObjectReference{Name: "nosecret"},
		EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "shop"}},
	}})
	w.applied(first)
	w.synced("refusing", gitopsv1alpha1.CommitStatusReasonRefused)
	cs := w.synced("nosecret", gitopsv1alpha1.CommitStatusReasonProviderNotReady)
	c := apimeta.FindStatusCondition(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced)
	if want := "the Secret nothing does not exist: create it, or correct the Provider"; c.Message != want {
		t.Errorf("message = %q, want %q", c.Message, want)
	}
	if err := w.Hub.Delete(t.Context(), &notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nosecret"}}); err != nil {
		t.Fatal(err)
	}
	w.until("one commit status left", func() (bool, string) { return len(w.statuses()) == 1, fmt.Sprint(len(w.statuses())) })
}

// TestAddressesThatAreNotAllowed: a Provider reaches nothing that no administrator
// has allowed, and its status says so.
func TestAddressesThatAreNotAllowed(t *testing.T) {
	w := newWorld(t)
	w.provider("inside", "http://10.0.0.1:6443")
	w.provider("metadata", "http://169.254.169.254")
	w.applied("main@sha1:" + strings.Repeat("ab", 20))
	for provider, says := range map[string]string{
		"inside":   "10.0.0.1 leads to a private address; an administrator can allow that with flotillad serve --source-networks",
		"metadata": "169.254.169.254 leads to a link-local or reserved address, where no source may be",
	} {
		cs := w.synced(provider, "AddressNotAllowed")
		message := apimeta.FindStatusCondition(cs.Status.Conditions, gitopsv1alpha1.CommitStatusSynced).Message
		if !strings.Contains(message, says) {
			t.Errorf("%s: message %q, want one saying %q", provider, message, says)
		}
	}
}
