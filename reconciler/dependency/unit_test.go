package dependency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// templates are what the store knows; kinds that are not in it are unknown.
type templates map[templatestore.Key]*unstructured.Unstructured

func (m templates) Get(_ context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	if obj, ok := m[key]; ok {
		return obj.DeepCopy(), templatestore.Present, nil
	}
	for known := range m {
		if known.GroupVersionKind == key.GroupVersionKind {
			return nil, templatestore.Absent, nil
		}
	}
	return nil, templatestore.Unknown, nil
}

func (m templates) List(_ context.Context, gvk schema.GroupVersionKind, namespace string, yield func(*unstructured.Unstructured)) error {
	for key, obj := range m {
		if key.GroupVersionKind == gvk && key.Namespace == namespace {
			yield(obj)
		}
	}
	return nil
}

func (templates) State(schema.GroupVersionKind) templatestore.State { return templatestore.Unserved }
func (templates) Want(any, ...schema.GroupVersionKind)              {}
func (templates) Listen(templatestore.Listener)                     {}

// know answers what templates refer to.
type know func(obj *unstructured.Unstructured) ([]kinds.Dependency, error)

func (k know) Dependencies(obj *unstructured.Unstructured) ([]kinds.Dependency, bool, error) {
	deps, err := k(obj)
	return deps, true, err
}

// recorder keeps Events.
type recorder []string

func (r *recorder) Event(obj runtime.Object, _, reason, message string) {
	*r = append(*r, strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")+" "+reason+": "+message)
}

// hub is a control plane with the loops, which counts writes.
type hub struct {
	*testing.T
	client.Client
	*Reconciler
	known  templates
	events recorder
	writes []string
}

// hubOf returns a hub whose cache shows the bindings but for hidden ones.
func hubOf(t *testing.T, objects templates, answer know, hidden string, stored ...client.Object) *hub {
	h := &hub{T: t, known: objects}
	all := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(stored...)
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		all = all.WithIndex(kind, byUser, func(obj client.Object) []string { return words(dependency.Refs(obj.(workv1alpha2.Binding))) })
	}
	all = all.WithIndex(&workv1alpha1.Work{}, bindings.WorksByID, func(obj client.Object) []string { return []string{bindings.IDOf(obj.(*workv1alpha1.Work))} })
	note := func(verb string, obj client.Object) { h.writes = append(h.writes, verb+" "+obj.GetName()) }
	live := all.Build()
	h.Client = interceptor.NewClient(live, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == hidden {
				key.Name = "nothing"
			}
			return c.Get(ctx, key, obj)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			note("patch", obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			note("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
	})
	skip := propagation.DefaultSkipRules()
	h.Reconciler = New(h.Client, live, objects, answer, &h.events, Options{Skip: skip, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))})
	h.newID = func() string { return "new" }
	return h
}

func parsed(text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		panic(err)
	}
	return obj
}

func known(objs ...*unstructured.Unstructured) templates {
	out := templates{}
	for _, obj := range objs {
		out[templatestore.KeyOf(obj)] = obj
	}
	return out
}

func web() *unstructured.Unstructured {
	return parsed(`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u-web}}`)
}

func settings() *unstructured.Unstructured {
	return parsed(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: u-cm}}`)
}

func config(name string) kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name}
}

func needs(all ...kinds.Dependency) know {
	return func(obj *unstructured.Unstructured) ([]kinds.Dependency, error) { return all, nil }
}

// bound is the binding of web, carried by a policy, in cluster a.
func bound(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", UID: "b-web", Generation: 1,
			Labels: map[string]string{
				workv1alpha2.ResourceBindingPermanentIDLabel: "id-web", policyv1alpha1.PropagationPolicyPermanentIDLabel: "p",
			},
			Annotations: map[string]string{
				policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: "p",
			},
			Finalizers: []string{workv1alpha2.BindingControllerFinalizer},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:      workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "u-web"},
			PropagateDeps: true, Placement: &policyv1alpha1.Placement{}, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}},
		},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

func noted(names ...string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		var all []kinds.Dependency
		for _, name := range names {
			all = append(all, config(name))
		}
		b.Annotations[workv1alpha2.BindingDependenciesAnnotationKey], _ = dependency.Note(all)
		b.Finalizers = append(b.Finalizers, workv1alpha2.BindingDependenciesDistributorFinalizer)
	}
}

func forVersion(digest string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) { b.Annotations[propagation.DigestAnnotation] = digest }
}

func released(b *workv1alpha2.ResourceBinding) { propagation.Unclaim(b) }

func suspends(b *workv1alpha2.ResourceBinding) {
	b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: ptr.To(true)}}
}

func leaving(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = ptr.To(metav1.Now()) }

// attached is the binding of settings, needed by others.
func attached(by ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings-configmap", UID: "b-cm", Generation: 1, Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-cm"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: "u-cm"},
			ConflictResolution: policyv1alpha1.ConflictAbort,
		},
	}
	for _, name := range by {
		b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name, Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}})
		b.Labels[workv1alpha2.DependedByLabelPrefix+workv1alpha2.BindingReferenceKey("shop", name)] = "id-web"
	}
	return b
}

var webKey = client.ObjectKey{Namespace: "shop", Name: "web-deployment"}

// TestOneUser looks once at the binding of a template.
func TestOneUser(t *testing.T) {
	fails := func(err error) know {
		return func(*unstructured.Unstructured) ([]kinds.Dependency, error) { return nil, err }
	}
	many := make([]kinds.Dependency, 3000)
	for i := range many {
		many[i] = config(fmt.Sprintf("settings-%04d-%s", i, strings.Repeat("x", 60)))
	}
	cases := map[string]struct {
		binding *workv1alpha2.ResourceBinding
		others  []client.Object
		along   []string // ConfigMaps that went along before
		none    bool     // the template's kind is not known
		answer  know
		index   string // what it needs from now on, "unknown" for not known, empty for no user
		noted   string // what the binding lists
		fault   string
		after   time.Duration
		writes  []string
		events  []string
	}{
		"the first look":    {binding: bound(), answer: needs(config("a")), index: "a", noted: "a", writes: []string{"patch web-deployment"}},
		"nothing is needed": {binding: bound(), answer: needs(), index: ""},
		"noted already":     {binding: bound(noted("a")), answer: needs(config("a")), index: "a", noted: "a"},
		"the answer is on its way": {
			along: []string{"a"}, binding: bound(noted("a")), answer: fails(&kinds.Pending{Of: "a server", After: time.Second}), index: "a", noted: "a", after: time.Second,
		},
		"the first answer is on its way": {binding: bound(), answer: fails(&kinds.Pending{After: time.Second}), index: "unknown", after: time.Second},
		"nobody can tell any more": {
			along: []string{"a"}, binding: bound(noted("a")), answer: fails(errors.New("bang")), index: "a", noted: "a", fault: "find out what it refers to: bang",
			writes: []string{"patch web-deployment"}, events: []string{
				"v1.ObjectReference GetDependenciesFailed: find out what it refers to: bang", "v1alpha2.ResourceBinding GetDependenciesFailed: find out what it refers to: bang",
			},
		},
		"what makes no sense does not stop the others": {
			binding: bound(), answer: needs(config("a"), kinds.Dependency{}), index: "a", noted: "a",
			fault:  "what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
			writes: []string{"patch web-deployment"}, events: []string{
				"v1.ObjectReference GetDependenciesFailed: what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
				"v1alpha2.ResourceBinding GetDependenciesFailed: what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
			},
		},
		"what makes no sense stands for what went along before": {
			along: []string{"a", "b"}, binding: bound(noted("a", "b")), answer: needs(config("a"), kinds.Dependency{}), index: "a b", noted: "a b",
			fault:  "what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
			writes: []string{"patch web-deployment"}, events: []string{
				"v1.ObjectReference GetDependenciesFailed: what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
				"v1alpha2.ResourceBinding GetDependenciesFailed: what it refers to makes no sense: dependency 2: has no apiVersion or no kind",
			},
		},
		"more than can be listed": {
			along: []string{"a"}, binding: bound(noted("a")), answer: needs(many...), index: "a", noted: "a", fault: "refers to 3000 objects, which are more than its binding can list",
			writes: []string{"patch web-deployment"}, events: []string{
				"v1.ObjectReference GetDependenciesFailed: refers to 3000 objects, which are more than its binding can list",
				"v1alpha2.ResourceBinding GetDependenciesFailed: refers to 3000 objects, which are more than its binding can list",
			},
		},
		"its kind is not known yet":                    {along: []string{"a"}, binding: bound(noted("a")), none: true, answer: needs(config("b")), index: "a", noted: "a"},
		"its kind is not known yet, nor what it needs": {binding: bound(), none: true, answer: needs(config("b")), index: "unknown"},
		"a new version that clusters do not hold yet": {
			along: []string{"a"}, binding: bound(noted("a"), forVersion("older")), answer: needs(config("b")), index: "a b", noted: "a",
		},
		"a new version that clusters never get": {
			along: []string{"a"}, binding: bound(noted("a"), forVersion("older"), released), answer: needs(config("b")), index: "a", noted: "a",
		},
		"a new version that is kept from clusters": {
			along: []string{"a"}, binding: bound(noted("a"), suspends), answer: needs(config("b")), index: "a b", noted: "a b", writes: []string{"patch web-deployment"},
		},
		"another template of the same name": {
			along: []string{"a"}, binding: bound(noted("a"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "u-before" }), answer: needs(config("b")), index: "a", noted: "a",
		},
		"nothing is to go along any more": {
			binding: bound(noted("a"), func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }), writes: []string{"patch web-deployment"},
		},
		"nothing is to go along any more, but something names it": {
			binding: bound(noted("a"), func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }),
			others:  []client.Object{attached("web-deployment")}, noted: "a",
		},
		"what is noted, and never went along": {
			binding: bound(noted("a"), suspends), answer: needs(config("b")), index: "b", noted: "b", writes: []string{"patch web-deployment"},
		},
		"what is noted, and nobody can tell": {
			binding: bound(noted("a")), none: true, answer: needs(config("b")), index: "unknown", noted: "a",
		},
		"being deleted":                         {binding: bound(noted("a"), leaving), noted: "a", writes: []string{"patch web-deployment"}},
		"being deleted, but something names it": {binding: bound(noted("a"), leaving), others: []client.Object{attached("web-deployment")}, noted: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := known(web())
			if tc.none {
				objects = templates{}
			}
			for _, name := range tc.along {
				b := attached("web-deployment")
				b.Name, b.UID, b.Spec.Resource.Name = name+"-configmap", types.UID("b-"+name), name
				tc.others = append(tc.others, b)
			}
			h := hubOf(t, objects, tc.answer, "", append(tc.others, tc.binding)...)
			for range 2 {
				result, _ := h.Reconcile(t.Context(), reconcile.Request{NamespacedName: webKey})
				if result.RequeueAfter != tc.after {
					t.Errorf("looks again after %s, want %s", result.RequeueAfter, tc.after)
				}
			}
			got := &workv1alpha2.ResourceBinding{}
			if err := h.Client.Get(t.Context(), webKey, got); err != nil {
				t.Fatal(err)
			}
			all := annotatedNeeds(t, got)
			if diff := cmp.Diff([]string{tc.noted, tc.fault}, []string{list(all), got.Annotations[dependency.FaultAnnotation]}); diff != "" {
				t.Errorf("noted, fault (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.index, h.needed()); diff != "" {
				t.Errorf("reverse index (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([][]string{tc.writes, tc.events}, [][]string{h.writes, h.events}); diff != "" {
				t.Errorf("writes, events of two looks (-want +got):\n%s", diff)
			}
			holds := slices.Contains(got.Finalizers, workv1alpha2.BindingDependenciesDistributorFinalizer)
			if tc.binding.DeletionTimestamp == nil && holds != (tc.noted != "") {
				t.Errorf("finalizers = %v", got.Finalizers)
			}
		})
	}
}

func list(all []kinds.Dependency) string {
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// needed is what the reverse index says of web.
func (h *hub) needed() string {
	switch e := h.index.get(dependency.Ref{Namespace: "shop", Name: "web-deployment"}); {
	case e == nil:
		return ""
	case !e.known:
		return "unknown"
	default:
		return list(e.deps)
	}
}

// TestOneObject looks once at what others need.
func TestOneObject(t *testing.T) {
	knows := func(h *hub, names ...string) {
		var all []kinds.Dependency
		for _, name := range names {
			all = append(all, config(name))
		}
		h.index.put(&entry{User: user(all), known: true, deps: all})
	}
	uses := func(h *hub) { knows(h, "settings") }
	idle := func(h *hub) { knows(h) }
	taken := attached()
	taken.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "example.com/v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	dying := settings()
	dying.SetDeletionTimestamp(ptr.To(metav1.Now()))
	inSystem := settings()
	inSystem.SetNamespace("kube-system")
	cases := map[string]struct {
		objects templates
		stored  []client.Object
		hidden  string
		index   func(h *hub)
		carried bool
		key     templatestore.Key
		after   time.Duration
		writes  []string
		events  []string
	}{
		"needed":          {objects: known(settings()), index: uses, writes: []string{"create settings-configmap"}},
		"not there yet":   {objects: known(web()), index: uses},
		"on its way out":  {objects: known(dying), index: uses},
		"nobody needs it": {objects: known(settings()), index: idle},
		"never goes anywhere": {objects: known(inSystem), index: func(h *hub) {
			d := config("settings")
			d.Namespace = "kube-system"
			h.index.put(&entry{User: user([]kinds.Dependency{d}), known: true})
		}, key: templatestore.KeyOf(inSystem)},
		"as it should be":       {objects: known(settings()), stored: []client.Object{attached("web-deployment")}, index: uses},
		"nobody needs it more":  {objects: known(settings()), stored: []client.Object{attached("web-deployment")}, index: idle, writes: []string{"delete settings-configmap"}},
		"a policy is to follow": {objects: known(settings()), stored: []client.Object{attached("web-deployment")}, index: idle, carried: true, after: handOver},
		"its user was not looked at yet": {
			objects: known(settings()), stored: []client.Object{attached("web-deployment"), bound()},
		},
		"its user takes nothing along": {
			objects: known(settings()), stored: []client.Object{attached("web-deployment"), bound(func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })},
			writes: []string{"delete settings-configmap"},
		},
		"its user cannot be found in the cache": {
			objects: known(settings()), stored: []client.Object{attached("web-deployment"), bound()}, hidden: "web-deployment",
		},
		"its user is gone": {objects: known(settings()), stored: []client.Object{attached("web-deployment")}, writes: []string{"delete settings-configmap"}},
		"nobody knows what its user needs": {
			objects: known(settings()), stored: []client.Object{attached("web-deployment")}, index: func(h *hub) { h.index.put(&entry{User: user(nil)}) },
		},
		"one user more": {
			objects: known(settings()), stored: []client.Object{attached("api-deployment"), bound(func(b *workv1alpha2.ResourceBinding) { b.Name = "api-deployment" })},
			index: uses, writes: []string{"patch settings-configmap"},
		},
		"its kind is not known": {objects: templates{}, stored: []client.Object{attached("web-deployment")}, index: uses},
		"its kind is not known, and nobody needs it": {
			objects: templates{}, stored: []client.Object{attached("web-deployment")}, index: idle, writes: []string{"delete settings-configmap"},
		},
		"it is gone": {objects: known(parsed(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: other}}`)), stored: []client.Object{attached("web-deployment")}, index: idle},
		"the name of its binding is taken": {
			objects: known(settings()), stored: []client.Object{taken, bound()}, index: uses, after: collisionPause, events: []string{
				"v1alpha2.ResourceBinding SyncScheduleResultToDependenciesFailed: ConfigMap settings cannot go along: the name of its binding is taken by example.com/v1 ConfigMap settings",
			},
		},
		"the same in another version": {
			objects: known(parsed(`{apiVersion: v2, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: u-cm}}`)),
			stored:  []client.Object{attached("web-deployment")}, index: uses,
			key: templatestore.Key{GroupVersionKind: schema.GroupVersionKind{Version: "v2", Kind: "ConfigMap"}, Namespace: "shop", Name: "settings"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := hubOf(t, tc.objects, nil, tc.hidden, tc.stored...)
			h.opts.Carried = func(context.Context, *unstructured.Unstructured) bool { return tc.carried }
			if tc.index != nil {
				tc.index(h)
			}
			if tc.key.Name == "" {
				tc.key = templatestore.KeyOf(settings())
			}
			for range 2 {
				result, err := attach{h.Reconciler}.Reconcile(t.Context(), tc.key)
				if err != nil || result.RequeueAfter != tc.after {
					t.Errorf("looks again after %s, want %s; error %v", result.RequeueAfter, tc.after, err)
				}
			}
			if diff := cmp.Diff([][]string{tc.writes, tc.events}, [][]string{h.writes, h.events}); diff != "" {
				t.Errorf("writes, events of two looks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUsersThatEnterMeanwhile: a user that is found to need an object while that
// is being looked at has not left it.
func TestUsersThatEnterMeanwhile(t *testing.T) {
	wide := config("")
	wide.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	labelled := settings()
	labelled.SetLabels(map[string]string{"app": "web"})
	cases := map[string]struct {
		objects templates
		needs   []kinds.Dependency
		stays   bool
	}{
		"by its name":                     {known(settings()), []kinds.Dependency{config("settings")}, true},
		"by its labels":                   {known(labelled), []kinds.Dependency{wide}, true},
		"by its name, not known yet":      {templates{}, []kinds.Dependency{config("settings")}, true},
		"maybe by labels, not known yet":  {templates{}, []kinds.Dependency{wide}, true},
		"not by these labels":             {known(settings()), []kinds.Dependency{wide}, false},
		"another one":                     {known(settings()), []kinds.Dependency{config("other")}, false},
		"another one, this one not known": {templates{}, []kinds.Dependency{config("other")}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := hubOf(t, tc.objects, nil, "", attached("web-deployment"), bound())
			a, s := attach{h.Reconciler}, attachment{key: templatestore.KeyOf(settings())}
			if next, err := a.readObject(t.Context(), &s); err != nil || next.Done {
				t.Fatalf("read: %v, %v", next, err)
			}
			h.index.put(&entry{User: user(tc.needs), known: true, deps: tc.needs})
			if _, err := a.decide(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			if stays := s.decision.Binding != nil; stays != tc.stays {
				t.Errorf("stays = %v, want %v", stays, tc.stays)
			}
		})
	}
}

// TestWhatChangesWhileItIsAsked: a template, a grant or a binding that changes while
// it is found out what a user needs may say something else of it. The user is looked
// at again, whether it was known as one before or not.
func TestWhatChangesWhileItIsAsked(t *testing.T) {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	cases := map[string]func(r *Reconciler, q queue){
		"its template":                    func(r *Reconciler, _ queue) { r.changed(templatestore.KeyOf(web()), nil, web(), false) },
		"a policy":                        func(r *Reconciler, _ queue) { crossNamespace{r}.regrant() },
		"a grant":                         func(r *Reconciler, _ queue) { crossNamespace{r}.granted("other") },
		"what else carries what it needs": func(r *Reconciler, q queue) { crossNamespace{r}.requeueRefused(q, attached()) },
	}
	for name, happens := range cases {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			var h *hub
			answer := func(*unstructured.Unstructured) ([]kinds.Dependency, error) {
				happens(h.Reconciler, q)
				return nil, nil
			}
			h = hubOf(t, known(web()), answer, "", bound())
			if err := h.users.Start(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			user := requestFor(dependency.Ref{Namespace: "shop", Name: "web-deployment"})
			for _, known := range []bool{false, true} {
				if _, err := h.Reconciler.Reconcile(t.Context(), user); err != nil {
					t.Fatal(err)
				}
				if q.Len() != 1 {
					t.Fatalf("known before = %v: looked at again %d times", known, q.Len())
				}
				again, _ := q.Get()
				if q.Done(again); again != user {
					t.Errorf("looks at %v", again)
				}
			}
			happens(h.Reconciler, q)
			if learned := name == "its template"; (q.Len() == 1) != learned {
				t.Errorf("looked at %d times after it is known what it needs", q.Len())
			}
		})
	}
}

// TestAPolicyThatDoesNotFollow: the binding waits for it, but not forever.
func TestAPolicyThatDoesNotFollow(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	h := hubOf(t, known(settings()), nil, "", attached("web-deployment"))
	h.opts.Clock = clock
	h.opts.Carried = func(context.Context, *unstructured.Unstructured) bool { return true }
	reconcile := func(after time.Duration) (time.Duration, int) {
		clock.SetTime(time.Unix(0, 0).Add(after))
		result, err := attach{h.Reconciler}.Reconcile(t.Context(), templatestore.KeyOf(settings()))
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter, len(h.writes)
	}
	for _, tc := range []struct {
		at, again time.Duration
		writes    int
	}{{0, handOver, 0}, {9 * time.Second, handOver, 0}, {longestHandOver, 0, 1}} {
		if again, writes := reconcile(tc.at); again != tc.again || writes != tc.writes {
			t.Errorf("after %s: looks again after %s, %d writes; want %s, %d", tc.at, again, writes, tc.again, tc.writes)
		}
	}
	if len(h.handed.since) > 0 {
		t.Errorf("still waits: %v", h.handed.since)
	}
}

func user(all []kinds.Dependency) dependency.User {
	u := dependency.UserOf(bound())
	u.Needs = dependency.Needs(all)
	return u
}

// TestReverseIndex: whoever is put in is found by what it needs, until it leaves.
func TestReverseIndex(t *testing.T) {
	l := newReverseIndex()
	wide := config("")
	wide.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	deps := []kinds.Dependency{config("settings"), wide}
	first := &entry{User: user(deps), known: true, deps: deps}
	if before := l.put(first); before != nil {
		t.Errorf("before = %v", before)
	}
	labelled := settings()
	labelled.SetName("other")
	labelled.SetLabels(map[string]string{"app": "web"})
	find := func(obj *unstructured.Unstructured) string {
		var out []string
		for _, u := range l.usersOf(selector.ResourceOf(obj)) {
			out = append(out, u.String())
		}
		return fmt.Sprint(out, l.concerns(templatestore.KeyOf(obj)))
	}
	stranger := settings()
	stranger.SetName("stranger")
	both := settings()
	both.SetLabels(labelled.GetLabels())
	got := []string{find(settings()), find(labelled), find(both), find(stranger), find(web()), fmt.Sprint(first.kinds())}
	want := []string{"[shop/web-deployment] true", "[shop/web-deployment] true", "[shop/web-deployment] true", "[] true", "[] false", "[/v1, Kind=ConfigMap]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	second := &entry{User: user(nil), known: true}
	if before := l.put(second); before != first || second.same(first) || !second.same(&entry{User: user(nil), known: true}) {
		t.Errorf("before = %v", before)
	}
	l.drop(second.Ref)
	if len(l.entries)+len(l.named)+len(l.wide) > 0 || l.drop(second.Ref) != nil {
		t.Errorf("left: %v %v %v", l.entries, l.named, l.wide)
	}
}

// TestWhoLooksAgainAtGrants: those who refer to something in the namespace whose
// grants change, whether they may have it or not, and nobody else.
func TestWhoLooksAgainAtGrants(t *testing.T) {
	l := newReverseIndex()
	in := func(namespace string) []kinds.Dependency {
		d := config("settings")
		d.Namespace = namespace
		return []kinds.Dependency{d}
	}
	for name, e := range map[string]*entry{
		"home": {deps: in("shop")}, "has": {deps: in("vault")}, "refused": {refused: in("vault")}, "other": {deps: in("bank")}, "cluster": {deps: in("")},
	} {
		e.User = user(e.deps)
		e.Ref = dependency.Ref{Namespace: "shop", Name: name}
		l.put(e)
	}
	for namespace, want := range map[string][]string{"vault": {"has", "refused"}, "bank": {"other"}, "shop": nil, "elsewhere": nil} {
		var got []string
		for _, ref := range l.crossNamespaceUsersOf(namespace) {
			got = append(got, ref.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("grants of %s (-want +got):\n%s", namespace, diff)
		}
	}
}

// annotatedNeeds returns what a binding says that its template refers to.
func annotatedNeeds(t testing.TB, b workv1alpha2.Binding) []kinds.Dependency {
	t.Helper()
	var out []kinds.Dependency
	if text := b.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey]; text != "" {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
