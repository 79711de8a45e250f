package templatestore_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

var shared servertest.Shared

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(shared.Main(m))
}

var configMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// heard keeps the events that a listener got about one namespace.
type heard struct {
	mu       sync.Mutex
	reported []string
	states   []templatestore.State
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.reported)
}

// run starts a store that notifies h about namespace.
func run(t *testing.T, cfg *rest.Config, namespace string, h *heard) *templatestore.Store {
	t.Helper()
	return runWith(t, cfg, namespace, h, func(m meta.RESTMapper) meta.RESTMapper { return m })
}

// runWith is run with another mapper around the real one.
func runWith(t *testing.T, cfg *rest.Config, namespace string, h *heard, around func(meta.RESTMapper) meta.RESTMapper) *templatestore.Store {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	s, err := templatestore.New(cfg, templatestore.Options{
		HTTPClient: httpClient, Scheme: scheme.New(), Mapper: around(mapper),
		Claims: func(obj *unstructured.Unstructured) []string {
			if id := obj.GetLabels()["claim"]; id != "" {
				return []string{id}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Listen(templatestore.Listener{
		Changed: func(key templatestore.Key, before, after *unstructured.Unstructured, _ bool) {
			if key.Namespace != namespace || key.Name == "kube-root-ca.crt" {
				return
			}
			what := "changed "
			if before == nil {
				what = "new "
			} else if after == nil {
				what = "gone "
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.reported = append(h.reported, what+key.Name)
		},
		KindChanged: func(_ context.Context, _ schema.GroupVersionKind, state templatestore.State) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.states = append(h.states, state)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("store: %v", err)
		}
	})
	return s
}

func eventually[T any](t *testing.T, what string, want T, got func() T) {
	t.Helper()
	var last T
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = got()
		return cmp.Equal(want, last), nil
	})
	if err != nil {
		t.Fatalf("%s (-want +got):\n%s", what, cmp.Diff(want, last))
	}
}

func TestStore(t *testing.T) {
	env := shared.Env(t)
	ns := env.Namespace(t)
	var h heard
	s := run(t, env.Config, ns, &h)
	key := templatestore.Key{GroupVersionKind: configMap, Namespace: ns, Name: "settings"}
	read := func() templatestore.Presence {
		_, presence, err := s.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return presence
	}
	if got := read(); got != templatestore.Unknown {
		t.Errorf("a kind that nobody wants: presence %d, want unknown", got)
	}
	s.Want("me", configMap)
	s.Want("you", configMap)
	eventually(t, "presence", templatestore.Absent, read)

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings", Labels: map[string]string{"claim": "p-1"}}}
	check(t, env.Hub.Create(t.Context(), cm))
	eventually(t, "presence", templatestore.Present, read)
	before := cm.DeepCopy()
	cm.Data = map[string]string{"a": "b"}
	check(t, env.Hub.Patch(t.Context(), cm, client.MergeFrom(before)))
	eventually(t, "events", []string{"new settings", "changed settings"}, h.all)
	claimed := func() []string {
		var names []string
		check(t, s.Claimed(t.Context(), configMap, "p-1", func(obj *unstructured.Unstructured) { names = append(names, obj.GetName()) }))
		return names
	}
	if diff := cmp.Diff([]string{"settings"}, claimed()); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}

	s.Want("me")
	s.Want("you")
	eventually(t, "presence after nobody wants it", templatestore.Unknown, read)
	eventually(t, "state", templatestore.Unwanted, func() templatestore.State { return s.State(configMap) })
	check(t, env.Hub.Delete(t.Context(), cm))
	s.Want("me", configMap)
	eventually(t, "presence after it went unseen", templatestore.Absent, read)
}

// TestPut has a read see a write before the watch does, and never after.
func TestPut(t *testing.T) {
	env := shared.Env(t)
	ns := env.Namespace(t)
	var h heard
	s := run(t, env.Config, ns, &h)
	s.Want("me", configMap)
	eventually(t, "state", templatestore.Synced, func() templatestore.State { return s.State(configMap) })
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(configMap)
	obj.SetNamespace(ns)
	obj.SetName("settings")
	check(t, env.Hub.Create(t.Context(), obj))
	s.Put(obj)
	got, presence, err := s.Get(t.Context(), templatestore.KeyOf(obj))
	check(t, err)
	if presence != templatestore.Present || got.GetResourceVersion() != obj.GetResourceVersion() {
		t.Errorf("after Put: presence %d", presence)
	}
	check(t, env.Hub.Delete(t.Context(), obj))
	eventually(t, "presence", templatestore.Absent, func() templatestore.Presence {
		_, presence, err := s.Get(t.Context(), templatestore.KeyOf(obj))
		check(t, err)
		return presence
	})
}

// TestAKindThatCannotBeListed holds the first list of a kind back: whoever asks
// about it is answered at once that nothing is known.
func TestAKindThatCannotBeListed(t *testing.T) {
	env := shared.Env(t)
	ns := env.Namespace(t)
	gate := make(chan struct{})
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") {
				select {
				case <-gate:
				case <-r.Context().Done():
				}
			}
			return next.RoundTrip(r)
		})
	})
	var h heard
	s := run(t, cfg, ns, &h)
	key := templatestore.Key{GroupVersionKind: configMap, Namespace: ns, Name: "settings"}
	s.Want("me", configMap)
	eventually(t, "state", templatestore.Starting, func() templatestore.State { return s.State(configMap) })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, presence, err := s.Get(ctx, key)
	none := func(obj *unstructured.Unstructured) { t.Errorf("%s is known", obj.GetName()) }
	err = errors.Join(err, s.List(ctx, configMap, ns, none), s.List(ctx, configMap, "", none), s.Claimed(ctx, configMap, "p-1", none), ctx.Err())
	if presence != templatestore.Unknown || err != nil {
		t.Errorf("presence %d, err %v; want unknown, at once", presence, err)
	}
	close(gate)
	eventually(t, "presence", templatestore.Absent, func() templatestore.Presence {
		_, presence, err := s.Get(t.Context(), key)
		check(t, err)
		return presence
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

func TestKindsComeAndGo(t *testing.T) {
	env := shared.Env(t)
	ns := env.Namespace(t)
	var h heard
	s := run(t, env.Config, ns, &h)
	gvk := schema.GroupVersionKind{Group: "store.example.com", Version: "v1", Kind: "Gadget"}
	other := gvk
	other.Version = "v2"
	s.Want("me", gvk, other)
	state := func(gvk schema.GroupVersionKind) func() templatestore.State {
		return func() templatestore.State { return s.State(gvk) }
	}
	eventually(t, "state of a kind that is not there", templatestore.Unserved, state(gvk))

	crd := definition(gvk)
	check(t, env.Hub.Create(t.Context(), crd))
	eventually(t, "state of a kind that was installed", templatestore.Synced, state(gvk))
	eventually(t, "state of a version that is not served", templatestore.Unserved, state(other))
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(gvk)
	gadget.SetNamespace(ns)
	gadget.SetName("g")
	check(t, env.Hub.Create(t.Context(), gadget))
	eventually(t, "events", []string{"new g"}, h.all)
	check(t, env.Hub.Delete(t.Context(), crd))
	eventually(t, "events", []string{"new g", "gone g"}, h.all)
	eventually(t, "state of a kind that was removed", templatestore.Unserved, state(gvk))

	again := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}, Spec: crd.Spec}
	eventually(t, "installed again", true, func() bool { return env.Hub.Create(t.Context(), again) == nil })
	eventually(t, "state of a kind that came back", templatestore.Synced, state(gvk))
	gadget.SetResourceVersion("")
	gadget.SetUID("")
	eventually(t, "one more is made", true, func() bool { return env.Hub.Create(t.Context(), gadget) == nil })
	eventually(t, "events", []string{"new g", "gone g", "new g"}, h.all)
}

// TestAKindThatDiscoveryDoesNotShowYet: a definition that is established is not said to be
// missing while the list of what is served has yet to name it.
func TestAKindThatDiscoveryDoesNotShowYet(t *testing.T) {
	env := shared.Env(t)
	gvk := schema.GroupVersionKind{Group: "late.example.com", Version: "v1", Kind: "Gadget"}
	crd := definition(gvk)
	check(t, env.Hub.Create(t.Context(), crd))
	servertest.Eventually(t, "it is established", func(ctx context.Context) error {
		if err := env.Hub.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return errors.New("not established")
	})
	var h heard
	late := &lateMapper{group: gvk.Group}
	s := runWith(t, env.Config, env.Namespace(t), &h, func(m meta.RESTMapper) meta.RESTMapper {
		late.RESTMapper = m
		return late
	})
	s.Want("me", gvk)
	eventually(t, "it was looked for three times", true, func() bool { return late.asked.Load() >= 3 })
	late.shown.Store(true)
	eventually(t, "state", templatestore.Synced, func() templatestore.State { return s.State(gvk) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff([]templatestore.State{templatestore.Starting, templatestore.Synced}, h.states); diff != "" {
		t.Errorf("states that were told (-want +got):\n%s", diff)
	}
}

// lateMapper does not know a group before it is shown.
type lateMapper struct {
	meta.RESTMapper
	group string
	shown atomic.Bool
	asked atomic.Int32
}

func (m *lateMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Group == m.group && !m.shown.Load() {
		m.asked.Add(1)
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// definition defines a kind.
func definition(gvk schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(gvk.Kind) + "s"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind, Plural: plural},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// TestAKindThatNobodyWants ends with neither a watch nor the memory of what it
// showed.
func TestAKindThatNobodyWants(t *testing.T) {
	env := shared.Env(t)
	ns := env.Namespace(t)
	var watches atomic.Int32
	cfg := rest.CopyConfig(env.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("watch") != "" {
				watches.Add(1)
				context.AfterFunc(r.Context(), func() { watches.Add(-1) })
			}
			return resp, err
		})
	})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
	check(t, env.Hub.Create(t.Context(), settings))
	s := run(t, cfg, ns, &heard{})
	var kept, seen atomic.Int32
	for range 3 {
		s.Want("me", configMap)
		eventually(t, "state", templatestore.Synced, func() templatestore.State { return s.State(configMap) })
		eventually(t, "watches", 1, func() int { return int(watches.Load()) })
		check(t, s.List(t.Context(), configMap, ns, func(obj *unstructured.Unstructured) {
			kept.Add(1)
			seen.Add(1)
			runtime.AddCleanup(obj, func(struct{}) { kept.Add(-1) }, struct{}{})
		}))
		s.Want("me")
		eventually(t, "watches of a kind that nobody wants", 0, func() int { return int(watches.Load()) })
		if kinds := s.Kinds(); len(kinds) != 0 {
			t.Errorf("kinds that are still watched: %v", kinds)
		}
	}
	if seen.Load() == 0 {
		t.Error("no object was ever seen")
	}
	eventually(t, "objects in memory", 0, func() int {
		runtime.GC()
		return int(kept.Load())
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
