package apply_test

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/watches"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

// world is a control plane with the apply loop alone, and a repository that
// the test commits to.
type world struct {
	*servertest.Env
	t         testing.TB
	namespace string
	store     *artifact.Store
	builds    *countedBuilder
	events    *recorder
	cache     client.Reader // the cache of the loop
	opts      apply.Options
	stop      func()
	around    func(apply.Builder) apply.Builder // nil for none
	wrap      transport.WrapperFunc             // of the loop's requests; nil for none
	building  builder.Options
	templates watches.Templates // nil for none
	allows    string            // what the next commits' trailers name
	revision  string            // of all commits; empty: each has its own
	log       logr.Logger       // the zero value for none
	egress    egress.Dialer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, shared.Env(t))
}

// newQuietWorld has a control plane of its own, so that writes can be counted.
func newQuietWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, servertest.New(t))
}

// newTenantWorld returns a world whose namespace is a tenant's: accounts may do there
// only what they were granted.
func newTenantWorld(t testing.TB) *world {
	t.Helper()
	return newWorldAs(t, shared.Env(t), nil, func(string) apply.Options { return apply.Options{} })
}

// newWorldOn returns a world whose namespace is an administrator's, and so privileged.
func newWorldOn(t testing.TB, env *servertest.Env) *world {
	t.Helper()
	return newWorldWith(t, env, nil)
}

// newWorldWith returns such a world, too, and wraps the real builder in
// another one.
func newWorldWith(t testing.TB, env *servertest.Env, around func(apply.Builder) apply.Builder) *world {
	t.Helper()
	return newWorldAs(t, env, around, func(namespace string) apply.Options {
		return apply.Options{Tenancy: tenancy.Rules{PrivilegedNamespaces: []string{namespace}}}
	})
}

func newWorldAs(t testing.TB, env *servertest.Env, around func(apply.Builder) apply.Builder, options func(namespace string) apply.Options) *world {
	t.Helper()
	w := &world{Env: env, t: t, events: &recorder{}, builds: &countedBuilder{}, around: around, egress: loopback(t)}
	w.namespace = w.Namespace(t)
	w.opts = options(w.namespace)
	w.open()
	return w
}

// newWorldLogging returns such a world, too, whose loop logs to the given logger.
func newWorldLogging(t testing.TB, to logr.Logger) *world {
	t.Helper()
	w := &world{Env: shared.Env(t), t: t, events: &recorder{}, builds: &countedBuilder{}, log: to}
	w.namespace = w.Namespace(t)
	w.opts = apply.Options{Tenancy: tenancy.Rules{PrivilegedNamespaces: []string{w.namespace}}, Secrets: inherited.New()}
	w.open()
	return w
}

// newWorldReaching returns such a world, too, whose loop reaches other clusters by another dialer.
func newWorldReaching(t testing.TB, dialer func(egress.Dialer, *servertest.Env) egress.Dialer) *world {
	t.Helper()
	env := shared.Env(t)
	w := &world{Env: env, t: t, events: &recorder{}, builds: &countedBuilder{}, egress: dialer(loopback(t), env)}
	w.namespace = w.Namespace(t)
	w.opts = apply.Options{Tenancy: tenancy.Rules{PrivilegedNamespaces: []string{w.namespace}}}
	w.open()
	return w
}

// open makes the repository and starts the loop.
func (w *world) open() {
	w.t.Helper()
	var err error
	if w.store, err = artifact.NewStore(w.t.TempDir(), artifact.Options{BaseURL: "http://localhost"}); err != nil {
		w.t.Fatal(err)
	}
	w.create(&sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/fleet", Interval: metav1.Duration{Duration: time.Minute}},
	})
	w.start()
}

// start runs the loop; it ends with the test, or when stop is called.
func (w *world) start() {
	w.t.Helper()
	config := rest.CopyConfig(w.Config)
	if w.wrap != nil {
		config.Wrap(w.wrap)
	}
	mgr, err := hub.NewManager(config, scheme.New(), hub.Options{Log: w.log, SeveralPerProcess: true})
	if err != nil {
		w.t.Fatal(err)
	}
	live := mgr.GetAPIReader()
	w.cache = mgr.GetClient()
	w.builds.Builder = builder.New(w.store, build.New(build.Limits{}), w.building)
	if w.around != nil {
		w.builds.Builder = w.around(w.builds.Builder)
	}
	if err := bindings.Register(w.t.Context(), mgr); err != nil {
		w.t.Fatal(err)
	}
	loop, err := apply.New(apply.Deps{
		Hub: mgr.GetClient(), Live: live, Config: mgr.GetConfig(), Builder: w.builds,
		Assessor: health.New(health.Deps{Hub: mgr.GetClient(), Live: live}), Events: w.events, Templates: w.templates, Egress: w.egress,
	}, w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := loop.Register(w.t.Context(), mgr); err != nil {
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
}

// countedBuilder counts how often a revision was built, which is the number of full
// runs.
type countedBuilder struct {
	apply.Builder
	mu    sync.Mutex
	count int
}

func (b *countedBuilder) Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error) {
	b.mu.Lock()
	b.count++
	b.mu.Unlock()
	return b.Builder.Build(ctx, in)
}

func (b *countedBuilder) runs() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}

// recorder keeps events as "Kind/name: reason: message".
type recorder struct {
	mu       sync.Mutex
	messages []string
}

func (r *recorder) Event(obj runtime.Object, _, reason, message string) {
	accessor, err := apimeta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, accessor.GetName()+": "+reason+": "+message)
}

// about returns the events about an object, with their reasons.
func (r *recorder) about(name string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, text := range r.messages {
		if rest, ok := strings.CutPrefix(text, name+": "); ok {
			out = append(out, rest)
		}
	}
	return out
}

func (r *recorder) reasonsOf(name string) []string {
	out := r.about(name)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], ": ")
	}
	return out
}

// reported waits until the events about an object have exactly these reasons. Events come
// after the write of the status.
func (w *world) reported(name string, reasons ...string) {
	w.t.Helper()
	w.until("told of "+name, func() (bool, string) {
		diff := cmp.Diff(reasons, w.events.reasonsOf(name))
		return diff == "", diff
	})
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Hub.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// commit makes files the repository's artifact, and returns the revision once
// the loop's cache has it.
func (w *world) commit(files map[string]string) string {
	w.t.Helper()
	return w.commitOf(w.namespace, files)
}

// commitOf does so for the repository fleet of a namespace.
func (w *world) commitOf(namespace string, files map[string]string) string {
	w.t.Helper()
	return w.commitTo(client.ObjectKey{Namespace: namespace, Name: "fleet"}, files)
}

// commitTo does so for any repository.
func (w *world) commitTo(key client.ObjectKey, files map[string]string) string {
	w.t.Helper()
	set := artifact.Files{}
	hash := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.ReplaceAll(files[name], "NAMESPACE", w.namespace)
		fmt.Fprintf(hash, "%s\n%s\n", name, text)
		set[name] = artifact.File{Data: []byte(text)}
	}
	inUse, err := lastgood.InUse(w.Hub, tenancy.Rules{}, sourcev1.GitRepositoryKind)(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	var kept []string
	for _, used := range inUse {
		kept = append(kept, used.Digest)
	}
	stored, err := w.store.Put(w.t.Context(), "GitRepository/"+key.String(), set, kept...)
	if err != nil {
		w.t.Fatal(err)
	}
	revision := fmt.Sprintf("main@sha1:%x", hash.Sum(nil))
	if w.revision != "" {
		revision = w.revision
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"artifact": map[string]any{
		"digest": stored.Digest, "path": stored.Path, "url": stored.URL, "revision": revision, "lastUpdateTime": "2026-01-02T03:04:05Z", "size": stored.Size,
		"metadata": map[string]any{gitopsv1alpha1.CommitAllowDeleteKey: w.allows},
	}}})
	if err != nil {
		w.t.Fatal(err)
	}
	repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: key.Name}}
	if err := w.Hub.Status().Patch(w.t.Context(), repository, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		w.t.Fatal(err)
	}
	w.seen(repository)
	return revision
}

// seen waits until the loop's cache has this version of an object, or a later one.
func (w *world) seen(obj client.Object) {
	w.t.Helper()
	cached := obj.DeepCopyObject().(client.Object)
	w.until(fmt.Sprintf("seen %s at version %s", obj.GetName(), obj.GetResourceVersion()), func() (bool, string) {
		if err := w.cache.Get(w.t.Context(), client.ObjectKeyFromObject(obj), cached); err != nil {
			return false, err.Error()
		}
		return !writecache.Older(cached.GetResourceVersion(), obj.GetResourceVersion()), cached.GetResourceVersion()
	})
}

// kustomization creates a Kustomization that prunes, with an interval of ten minutes.
func (w *world) kustomization(name string, change ...func(*kustomizev1.KustomizationSpec)) {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: kustomizev1.KustomizationSpec{
			Interval:      metav1.Duration{Duration: 10 * time.Minute},
			RetryInterval: &metav1.Duration{Duration: time.Second},
			Path:          "./app",
			Prune:         true,
			SourceRef:     kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"},
		},
	}
	for _, c := range change {
		c(&ks.Spec)
	}
	w.create(ks)
	w.t.Cleanup(func() { w.remove(name) })
}

// remove deletes a Kustomization and waits until it is gone, so that its
// finalizer does not outlive the loop.
func (w *world) remove(name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 2*time.Minute)
	defer cancel()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.Hub.Patch(ctx, ks, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
		w.t.Error(err)
	}
	if err := w.Hub.Delete(ctx, ks); client.IgnoreNotFound(err) != nil {
		w.t.Error(err)
	}
}

func (w *world) get(name string) *kustomizev1.Kustomization {
	w.t.Helper()
	var ks kustomizev1.Kustomization
	if err := w.Hub.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &ks); err != nil {
		w.t.Fatal(err)
	}
	return &ks
}

// until polls until a condition holds. what names the condition in the failure.
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

// ready waits until a Kustomization has applied a revision.
func (w *world) ready(name, revision string) *kustomizev1.Kustomization {
	w.t.Helper()
	w.awaitReason(name, revision, meta.ReconciliationSucceededReason)
	return w.get(name)
}

// awaitReason waits until the condition Ready of a Kustomization has a reason at a
// revision, and returns the message.
func (w *world) awaitReason(name, revision, reason string) string {
	w.t.Helper()
	message := ""
	w.until(fmt.Sprintf("%s: %s at %s", name, reason, revision), func() (bool, string) {
		ks := w.get(name)
		c := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		if c == nil {
			return false, "no condition"
		}
		message = c.Message
		return c.Reason == reason && ks.Status.LastAttemptedRevision == revision && c.ObservedGeneration == ks.Generation,
			fmt.Sprintf("%s %s: %s (attempted %s)", c.Status, c.Reason, c.Message, ks.Status.LastAttemptedRevision)
	})
	return message
}

// object reads an object of the hub; nil if there is none.
func (w *world) object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	err := w.Hub.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return obj
}

func (w *world) configMap(name string) *unstructured.Unstructured {
	w.t.Helper()
	return w.object("v1", "ConfigMap", w.namespace, name)
}

// edit changes one field of an object by hand.
func (w *world) edit(obj *unstructured.Unstructured, value any, path ...string) {
	w.t.Helper()
	before := obj.DeepCopy()
	if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Hub.Patch(w.t.Context(), obj, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) annotate(name, key, value string) {
	w.t.Helper()
	ks := w.get(name)
	before := ks.DeepCopy()
	if ks.Annotations == nil {
		ks.Annotations = map[string]string{}
	}
	ks.Annotations[key] = value
	if err := w.Hub.Patch(w.t.Context(), ks, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) change(name string, change func(*kustomizev1.KustomizationSpec)) {
	w.t.Helper()
	ks := w.get(name)
	before := ks.DeepCopy()
	change(&ks.Spec)
	if err := w.Hub.Patch(w.t.Context(), ks, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

func inventoryOf(ks *kustomizev1.Kustomization) []string {
	if ks.Status.Inventory == nil {
		return nil
	}
	var ids []string
	for _, e := range ks.Status.Inventory.Entries {
		ids = append(ids, strings.ReplaceAll(e.ID, ks.Namespace, "NAMESPACE"))
	}
	return ids
}

// configMaps returns manifests of n ConfigMaps in one file.
func configMaps(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-%02d, namespace: NAMESPACE}\ndata: {number: \"%d\"}\n", i, i)
	}
	return b.String()
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: web, image: "nginx:1"}]}
`

// noise returns text that does not compress.
func noise(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, size)
	for i := range text {
		text[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[random.IntN(62)]
	}
	return string(text)
}

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NAMESPACE}
spec: {selector: {app: web}, ports: [{port: 80}]}
`
