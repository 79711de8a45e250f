package binding_test

import (
	stdcmp "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/reconciler/binding"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
	"github.com/flotilla-io/flotilla/reconciler/template"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

// fleet is the real server with the three loops on it, and clusters that
// nothing runs in.
type fleet struct {
	testing.TB
	ctx     context.Context // of the test, and of what cleans up after it
	env     *servertest.Env
	ns      string
	traffic *traffic
	events  *recorder
	stop    func()
	// statusEvery is how long counts of policies wait; zero means too long to see.
	statusEvery time.Duration
	// staleFor is for how long after its start the loop does not trust older statuses of Works.
	staleFor time.Duration
	// away says that no cluster answers.
	away atomic.Bool
	// lost says that clusters themselves do not have what their Works report.
	lost atomic.Bool
	// back is since when clusters have answered; nil for always.
	back atomic.Pointer[time.Time]
}

// newFleet joins clusters, named after the test and labelled with it, and
// starts the loops.
func newFleet(t testing.TB, clusters ...string) *fleet {
	t.Helper()
	env := shared.Env(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f := &fleet{TB: t, ctx: ctx, env: env, ns: namespace(t, env)}
	for _, name := range clusters {
		f.join(name, nil)
	}
	f.start()
	go f.bury(ctx)
	t.Cleanup(func() {
		defer cancel()
		defer f.stop()
		if _, measured := t.(*testing.B); !measured {
			f.clear()
		}
	})
	return f
}

// Context outlives the test by what cleans up after it.
func (f *fleet) Context() context.Context { return f.ctx }

// clear removes what the test left, so that the next one is alone. A server that has to
// delete a thousand objects under load may time out on the way: it is then asked again.
func (f *fleet) clear() {
	here := client.InNamespace(f.ns)
	for _, kind := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}, &policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.OverridePolicy{}} {
		eventually(f, fmt.Sprintf("what keeps a %T", kind), "", func() string {
			if err := f.env.Hub.DeleteAllOf(f.Context(), kind, here); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	eventually(f, "bindings and policies left", 0, func() int {
		var left workv1alpha2.ResourceBindingList
		f.check(f.env.Hub.List(f.Context(), &left, here))
		var policies policyv1alpha1.PropagationPolicyList
		f.check(f.env.Hub.List(f.Context(), &policies, here))
		return len(left.Items) + len(policies.Items)
	})
}

// bury stands in for the members: it removes the finalizers of Works that are being deleted.
func (f *fleet) bury(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var list workv1alpha1.WorkList
		if err := f.env.Hub.List(ctx, &list); err != nil {
			return false, nil // the test ends, or the next round works
		}
		for i := range list.Items {
			w := &list.Items[i]
			if patch, has := bindings.WithoutFinalizer(w, workv1alpha2.ExecutionControllerFinalizer); has && w.DeletionTimestamp != nil {
				_ = f.env.Hub.Patch(ctx, w, patch)
			}
		}
		return false, nil
	})
}

// namespace creates a namespace that stays after the test: without an execution loop Works do not end, so that
// its contents could not be deleted.
func namespace(t testing.TB, env *servertest.Env) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	if err := env.Hub.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// start runs the loops until stop.
func (f *fleet) start() {
	f.Helper()
	f.traffic, f.events = &traffic{}, &recorder{}
	cfg := rest.CopyConfig(f.env.Config)
	cfg.Wrap(f.traffic.wrap)
	mgr, err := hub.NewManager(cfg, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	f.check(err)
	templates, err := templatestore.New(cfg, templatestore.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Claims: template.Claims,
	})
	f.check(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	decider := decider.New(mgr.GetClient(), decider.Options{})
	knowledge := interpreters.New(interpreters.Options{})
	know := knowledge.Interpreter()
	f.check(bindings.Register(ctx, mgr))
	f.check(decider.Register(ctx, mgr))
	carrier := template.New(mgr.GetClient(), templates, decider, know, f.events, template.Options{Debounce: 50 * time.Millisecond, StatusEvery: stdcmp.Or(f.statusEvery, time.Hour)})
	f.check(carrier.Register(ctx, mgr))
	f.check(scheduler.New(mgr.GetClient(), decider, f.events, scheduler.Options{}).Register(mgr))
	carried := binding.New(mgr.GetClient(), mgr.GetAPIReader(), templates, know, f.events, binding.Options{PlacementUnchanged: carrier.PlacementUnchanged, StaleFor: f.staleFor, Answers: f.answers, HasWork: f.holds})
	f.check(carried.Register(ctx, mgr))
	knowledge.OnChange(carrier.Reinterpret)
	knowledge.OnChange(carried.Reinterpret)
	f.check(knowledge.Register(ctx, mgr))
	f.check(templates.Register(mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		f.Fatal("the cache did not come up")
	}
	var once sync.Once
	f.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.Errorf("manager: %v", err)
			}
		})
	}
}

func (f *fleet) holds(context.Context, string, *workv1alpha1.Work) (known bool, err error) {
	if f.lost.Load() {
		return true, errors.New("it is not there")
	}
	return true, nil
}

func (f *fleet) answers(_ string, asked time.Time) (since time.Time, yes bool, again time.Duration) {
	if f.away.Load() || time.Since(asked) < 50*time.Millisecond { // what was heard before was before
		return time.Time{}, false, 50 * time.Millisecond
	}
	return ptr.Deref(f.back.Load(), time.Time{}), true, 0
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// cluster returns the full name of a cluster of this test.
func (f *fleet) cluster(name string) string { return f.ns + "-" + name }

// join makes a cluster that has all that workloads need.
func (f *fleet) join(name string, labels map[string]string) {
	f.Helper()
	all := map[string]string{"fleet": f.ns}
	maps.Copy(all, labels)
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: f.cluster(name), Labels: all},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
	f.check(f.env.Hub.Create(f.Context(), c))
	c.Status.APIEnablements = apis()
	f.check(f.env.Hub.Status().Update(f.Context(), c))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(f.cluster(name))}}
	f.check(f.env.Hub.Create(f.Context(), space))
}

// apis returns the APIs that the tests need in a cluster.
func apis() []clusterv1alpha1.APIEnablement {
	return []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", Resources: []clusterv1alpha1.APIResource{{Name: "clusterroles", Kind: "ClusterRole"}}},
		{GroupVersion: "example.com/v1", Resources: []clusterv1alpha1.APIResource{{Name: "widgets", Kind: "Widget"}, {Name: "deployments", Kind: "Deployment"}, {Name: "gadgets", Kind: "Gadget"}}},
	}
}

// create stores objects in the test's namespace and waits until policies among
// them have been looked at.
func (f *fleet) create(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		f.check(f.env.Hub.Create(f.Context(), obj))
	}
	for _, obj := range objs {
		if p, ok := obj.(policyv1alpha1.Policy); ok {
			eventually(f, "policy is looked at", true, func() bool { return f.ready(p) != "" })
		}
	}
}

// edit changes a stored object.
func edit[T client.Object](f *fleet, obj T, change func(T)) {
	f.Helper()
	f.check(f.env.Hub.Get(f.Context(), client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	f.check(f.env.Hub.Patch(f.Context(), obj, client.MergeFrom(before)))
}

func (f *fleet) deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/web:1"}}},
			},
		},
	}
}

// policy propagates what is selected to the clusters of this test.
func (f *fleet) policy(name string, selectors ...policyv1alpha1.ResourceSelector) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: selectors,
			Placement: policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": f.ns}},
			}},
		},
	}
}

func deployments(name string) policyv1alpha1.ResourceSelector {
	return policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

// imageTag overrides the tag of a Deployment's images.
func (f *fleet) imageTag(name, deployment, tag string, clusters ...string) *policyv1alpha1.OverridePolicy {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = f.cluster(c)
	}
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: name},
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{deployments(deployment)},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: names},
				Overriders: policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{
					Component: policyv1alpha1.Tag, Operator: policyv1alpha1.OverriderOpReplace, Value: tag,
				}}},
			}},
		},
	}
}

// binding returns the binding of a template in the test's namespace.
func (f *fleet) binding(kind, name string) *workv1alpha2.ResourceBinding {
	f.Helper()
	b := &workv1alpha2.ResourceBinding{}
	err := f.env.Hub.Get(f.Context(), client.ObjectKey{Namespace: f.ns, Name: workv1alpha2.BindingName(kind, name)}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.check(err)
	return b
}

// images returns the image that each cluster should run of a Deployment, by the
// short name of the cluster. Works that are being deleted are left out.
func (f *fleet) images(name string) map[string]string {
	f.Helper()
	out := map[string]string{}
	for cluster, w := range f.works("Deployment", name) {
		var manifest appsv1.Deployment
		f.check(json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest))
		_, tag, _ := strings.Cut(manifest.Spec.Template.Spec.Containers[0].Image, ":")
		out[cluster] = fmt.Sprintf("%dx%s", ptr.Deref(manifest.Spec.Replicas, -1), tag)
	}
	return out
}

// works returns the Works of a template by the short name of the cluster.
func (f *fleet) works(kind, name string) map[string]workv1alpha1.Work {
	f.Helper()
	var list workv1alpha1.WorkList
	f.check(f.env.Hub.List(f.Context(), &list))
	out := map[string]workv1alpha1.Work{}
	for _, w := range list.Items {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		short, mine := strings.CutPrefix(cluster, f.ns+"-")
		if mine && w.DeletionTimestamp == nil && w.Name == workv1alpha2.WorkName(kind, name, f.ns) {
			out[short] = w
		}
	}
	return out
}

// eventually waits until got returns want.
func eventually[T any](f *fleet, what string, want T, got func() T) {
	f.Helper()
	var last T
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = got()
		return cmp.Equal(want, last), nil
	})
	if err != nil {
		f.Fatalf("%s (-want +got):\n%s\nrequests: %v\nevents: %v", what, cmp.Diff(want, last), f.traffic.writes(), f.events.all())
	}
}

// awaitIdle waits until nothing is written any more and returns what the loops
// have written since the last call, without the status of policies.
func (f *fleet) awaitIdle() map[string]int {
	f.Helper()
	f.env.QuietRevision(f)
	out := f.traffic.writes()
	f.traffic.reset()
	return out
}

// wrote checks what the loops wrote since the last look.
func (f *fleet) wrote(what string, want map[string]int) {
	f.Helper()
	if diff := cmp.Diff(want, f.awaitIdle()); diff != "" {
		f.Errorf("writes for %s (-want +got):\n%s", what, diff)
	}
}

// traffic counts the writes that the loops send, by verb and resource, and
// those that were refused. It can delay writes.
type traffic struct {
	mu      sync.Mutex
	counts  map[string]int
	blocked map[string]chan struct{} // by verb and resource, until it is closed
}

// hold delays the loops' writes of a verb and resource until release is
// called.
func (c *traffic) hold(what string) (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	gate := make(chan struct{})
	c.blocked = map[string]chan struct{}{what: gate}
	return sync.OnceFunc(func() { close(gate) })
}

// pass returns once r is not delayed any more.
func (c *traffic) pass(r *http.Request) {
	c.mu.Lock()
	gate := c.blocked[r.Method+" "+resourceOf(r.URL.Path)]
	c.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case <-gate:
	case <-r.Context().Done():
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		c.pass(r)
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.counts == nil {
			c.counts = map[string]int{}
		}
		key := r.Method + " " + resourceOf(r.URL.Path)
		if resp.StatusCode >= http.StatusBadRequest {
			key += fmt.Sprintf(" refused %d", resp.StatusCode)
		}
		c.counts[key]++
		return resp, nil
	})
}

// resourceOf returns the resource, and subresource, that a path is about.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && len(parts) > i+2 {
		parts = parts[i+2:]
	} else if parts[0] == "apis" {
		parts = parts[3:]
	} else {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

func (c *traffic) writes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	maps.Copy(out, c.counts)
	return out
}

func (c *traffic) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = nil
}

// recorder keeps events instead of writing them.
type recorder struct {
	mu       sync.Mutex
	messages []string
}

func (r *recorder) Event(obj runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gvk := obj.GetObjectKind().GroupVersionKind()
	kind := gvk.Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", obj)
	}
	r.messages = append(r.messages, kind+" "+reason+": "+message)
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
}

// reasons returns how often each reason was reported about a kind.
func (r *recorder) reasons() map[string]int {
	out := map[string]int{}
	for _, e := range r.all() {
		head, _, _ := strings.Cut(e, ":")
		out[head]++
	}
	return out
}
