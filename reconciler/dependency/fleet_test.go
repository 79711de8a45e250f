package dependency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/binding"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/dependency"
	"github.com/flotilla-io/flotilla/reconciler/scheduler"
	"github.com/flotilla-io/flotilla/reconciler/template"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

// fleet is the real server with the loops that bring templates to clusters, and
// clusters a, b and c that nothing runs in.
type fleet struct {
	*testing.T
	ctx     context.Context // of the test, and of what cleans up after it
	env     *servertest.Env
	ns      string
	rules   kinds.Table // beside the native ones
	off     bool
	traffic *traffic
	events  *recorder
	stop    func()
}

func newFleet(t *testing.T, rules kinds.Table) *fleet {
	t.Helper()
	env := shared.Env(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	f := &fleet{T: t, ctx: ctx, env: env, rules: rules}
	f.check(env.Hub.Create(ctx, ns))
	f.ns = ns.Name
	for _, name := range []string{"a", "b", "c"} {
		f.join(name)
	}
	f.start()
	go f.bury(ctx)
	t.Cleanup(func() {
		defer cancel()
		defer func() { f.stop() }()
		f.clear()
	})
	return f
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.ctx))
	decider := decider.New(mgr.GetClient(), decider.Options{})
	know := interpreter.New(f.rules, native.Table())
	f.check(bindings.Register(ctx, mgr))
	f.check(decider.Register(ctx, mgr))
	carrier := template.New(mgr.GetClient(), templates, decider, know, f.events, template.Options{Debounce: 50 * time.Millisecond, StatusEvery: time.Hour})
	f.check(carrier.Register(ctx, mgr))
	f.check(scheduler.New(mgr.GetClient(), decider, f.events, scheduler.Options{}).Register(mgr))
	f.check(dependency.New(mgr.GetClient(), mgr.GetAPIReader(), templates, know, f.events, dependency.Options{Carried: carrier.Carries, Off: f.off}).Register(ctx, mgr))
	f.check(binding.New(mgr.GetClient(), mgr.GetAPIReader(), templates, know, f.events, binding.Options{PlacementUnchanged: carrier.PlacementUnchanged}).Register(ctx, mgr))
	f.check(templates.Register(mgr))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		f.Fatal("the cache did not come up")
	}
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("manager: %v", err)
		}
	})
}

func (f *fleet) restart() {
	f.Helper()
	f.stop()
	f.start()
}

func (f *fleet) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// clear removes what the test left, so that the next one is alone.
func (f *fleet) clear() {
	here := client.InNamespace(f.ns)
	for _, kind := range []client.Object{
		&appsv1.Deployment{}, &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.ServiceAccount{}, &corev1.PersistentVolumeClaim{}, &policyv1alpha1.PropagationPolicy{},
	} {
		f.check(f.env.Hub.DeleteAllOf(f.ctx, kind, here))
	}
	eventually(f, "bindings and policies left", 0, func() int {
		var left workv1alpha2.ResourceBindingList
		f.check(f.env.Hub.List(f.ctx, &left, here))
		var policies policyv1alpha1.PropagationPolicyList
		f.check(f.env.Hub.List(f.ctx, &policies, here))
		return len(left.Items) + len(policies.Items)
	})
}

// bury stands in for the members: it lets Works go that are being deleted.
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

func (f *fleet) cluster(name string) string { return f.ns + "-" + name }

func (f *fleet) join(name string) {
	f.Helper()
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: f.cluster(name)},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
	f.check(f.env.Hub.Create(f.ctx, c))
	api := func(version string, kinds ...string) clusterv1alpha1.APIEnablement {
		out := clusterv1alpha1.APIEnablement{GroupVersion: version}
		for _, kind := range kinds {
			out.Resources = append(out.Resources, clusterv1alpha1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
		}
		return out
	}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		api("v1", "ConfigMap", "Secret"), api("apps/v1", "Deployment"), api("rbac.authorization.k8s.io/v1", "ClusterRole"),
	}
	f.check(f.env.Hub.Status().Update(f.ctx, c))
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: workv1alpha2.ExecutionNamespace(f.cluster(name))}}
	f.check(f.env.Hub.Create(f.ctx, space))
}

// create stores objects, those that have no namespace of their own in the test's.
func (f *fleet) create(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		f.check(f.env.Hub.Create(f.ctx, obj))
	}
}

func (f *fleet) delete(objs ...client.Object) {
	f.Helper()
	for _, obj := range objs {
		f.check(f.env.Hub.Delete(f.ctx, obj))
	}
}

// edit changes a stored object.
func edit[T client.Object](f *fleet, obj T, change func(T)) {
	f.Helper()
	f.check(f.env.Hub.Get(f.ctx, client.ObjectKeyFromObject(obj), obj))
	before := obj.DeepCopyObject().(client.Object)
	change(obj)
	f.check(f.env.Hub.Patch(f.ctx, obj, client.MergeFrom(before)))
}

func (f *fleet) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: f.ns, Name: name}
}

// deployment refers to ConfigMaps.
func (f *fleet) deployment(name string, configs ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: f.meta(name),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/web:1"}}},
			},
		},
	}
	refer(configs...)(d)
	return d
}

// refer has a Deployment refer to ConfigMaps, and no others.
func refer(configs ...string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.EnvFrom = nil
		for _, name := range configs {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
		}
	}
}

func (f *fleet) config(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: f.meta(name), Data: map[string]string{"a": "1"}}
}

// policy carries one object to clusters, with what it refers to.
func (f *fleet) policy(kind, name string, clusters ...string) *policyv1alpha1.PropagationPolicy {
	version := map[string]string{"Deployment": "apps/v1", "ConfigMap": "v1"}[kind]
	p := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: f.meta(strings.ToLower(kind) + "-" + name),
		Spec: policyv1alpha1.PropagationSpec{
			PropagateDeps:     kind != "ConfigMap",
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: version, Kind: kind, Name: name}},
		},
	}
	f.to(clusters...)(p)
	return p
}

// to has a policy name clusters.
func (f *fleet) to(clusters ...string) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{}
		for _, c := range clusters {
			p.Spec.Placement.ClusterAffinity.ClusterNames = append(p.Spec.Placement.ClusterAffinity.ClusterNames, f.cluster(c))
		}
	}
}

// works returns the Works of this fleet that are not being deleted, by what they
// hold and then by cluster.
func (f *fleet) works() map[string]map[string]workv1alpha1.Work {
	f.Helper()
	var list workv1alpha1.WorkList
	f.check(f.env.Hub.List(f.ctx, &list))
	out := map[string]map[string]workv1alpha1.Work{}
	for _, w := range list.Items {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		short, mine := strings.CutPrefix(cluster, f.ns+"-")
		if !mine || w.DeletionTimestamp != nil {
			continue
		}
		var obj metav1.PartialObjectMetadata
		f.check(json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &obj))
		name := obj.Kind + " " + obj.Name
		if out[name] == nil {
			out[name] = map[string]workv1alpha1.Work{}
		}
		out[name][short] = w
	}
	return out
}

// holds returns which clusters hold what.
func (f *fleet) holds() map[string]string {
	f.Helper()
	out := map[string]string{}
	for name, works := range f.works() {
		out[name] = strings.Join(slices.Sorted(maps.Keys(works)), " ")
	}
	return out
}

// await waits until clusters hold that and nothing else. What they are sent is
// healthy there at once.
func (f *fleet) await(want map[string]string) {
	f.Helper()
	eventually(f, "what clusters hold", want, func() map[string]string { f.arrive(); return f.holds() })
}

// arrive has clusters say that they have what they were sent.
func (f *fleet) arrive() {
	for _, works := range f.works() {
		for _, w := range works {
			if rollup.Ready(&w) {
				continue
			}
			w.Status.Conditions = []metav1.Condition{{
				Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkAppliedSuccessfulReason,
				ObservedGeneration: w.Generation, LastTransitionTime: metav1.Now(),
			}}
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}}
			if err := f.env.Hub.Status().Update(f.ctx, &w); !apierrors.IsConflict(err) {
				f.check(client.IgnoreNotFound(err))
			}
		}
	}
}

// binding returns a binding in the test's namespace; nil if there is none.
func (f *fleet) binding(kind, name string) *workv1alpha2.ResourceBinding {
	f.Helper()
	b := &workv1alpha2.ResourceBinding{}
	err := f.env.Hub.Get(f.ctx, client.ObjectKey{Namespace: f.ns, Name: workv1alpha2.BindingName(kind, name)}, b)
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.check(err)
	return b
}

// eventually waits until got returns want.
func eventually[T any](f *fleet, what string, want T, got func() T) {
	f.Helper()
	var last T
	err := wait.PollUntilContextTimeout(f.ctx, 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = got()
		return cmp.Equal(want, last), nil
	})
	if err != nil {
		f.Fatalf("%s (-want +got):\n%s\nrequests: %v\nevents: %v", what, cmp.Diff(want, last), f.traffic.writes(), f.events.all())
	}
}

// awaitIdle waits until nothing is written any more and returns what the loops
// have written since the last call.
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

// traffic counts the writes that the loops send, by verb and resource, and keeps
// when Works were made.
type traffic struct {
	mu     sync.Mutex
	counts map[string]int
	// bound is when the last binding was made, works when each Work was, by its name
	// and namespace.
	bound time.Time
	works map[string]time.Time
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func (c *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet {
			return next.RoundTrip(r)
		}
		key, name := r.Method+" "+resourceOf(r.URL.Path), ""
		if key == "POST works" {
			name = nameIn(r)
		}
		resp, err := next.RoundTrip(r)
		if err != nil {
			return resp, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.counts == nil {
			c.counts, c.works = map[string]int{}, map[string]time.Time{}
		}
		switch key {
		case "POST works":
			c.works[name] = time.Now()
		case "POST resourcebindings":
			c.bound = time.Now()
		}
		if resp.StatusCode >= http.StatusBadRequest {
			key += fmt.Sprintf(" refused %d", resp.StatusCode)
		}
		c.counts[key]++
		return resp, nil
	})
}

// nameIn returns name and namespace of the object that a request sends.
func nameIn(r *http.Request) string {
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var obj metav1.PartialObjectMetadata
	if err := json.NewDecoder(body).Decode(&obj); err != nil {
		return ""
	}
	return obj.Name + " " + obj.Namespace
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

// recorder keeps Events instead of writing them.
type recorder struct {
	mu       sync.Mutex
	reported []string
}

func (r *recorder) Event(obj runtime.Object, eventType, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
	r.reported = append(r.reported, fmt.Sprintf("%s %s %s: %s", kind, eventType, reason, message))
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reported)
}

// warnings returns the Warning Events.
func (r *recorder) warnings() []string {
	return slices.DeleteFunc(r.all(), func(e string) bool { return !strings.Contains(e, corev1.EventTypeWarning) })
}
