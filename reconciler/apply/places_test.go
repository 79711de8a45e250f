package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
)

// endless is a path whose build does not end by itself.
const endless = "./endless"

// endlessBuilder does not finish a build of that path before its context ends. It
// holds no place, as real builds, which run in processes of their own, do not either.
type endlessBuilder struct {
	apply.Builder
	began chan string // names of the Kustomizations
	ended chan string
}

func (b *endlessBuilder) Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error) {
	if in.Kustomization.Spec.Path != endless {
		return b.Builder.Build(ctx, in)
	}
	b.began <- in.Kustomization.Name
	places.Outside(ctx, func(ctx context.Context) { <-ctx.Done() })
	b.ended <- in.Kustomization.Name
	return nil, fmt.Errorf("build: %w", context.Cause(ctx))
}

// newEndlessWorld returns a world whose builds of the path endless do not end.
func newEndlessWorld(t *testing.T) (*world, *endlessBuilder) {
	b := &endlessBuilder{began: make(chan string, 100), ended: make(chan string, 100)}
	w := newWorldWith(t, shared.Env(t), func(inner apply.Builder) apply.Builder {
		b.Builder = inner
		return b
	})
	return w, b
}

// neighbour is another tenant of the same loop.
func (w *world) neighbour() *world {
	w.t.Helper()
	other := *w
	other.namespace = w.Namespace(w.t)
	other.create(&sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: other.namespace, Name: "fleet"},
		Spec:       sourcev1.GitRepositorySpec{URL: "https://git.example.com/fleet", Interval: metav1.Duration{Duration: time.Minute}},
	})
	other.allow("default", "edit", other.namespace)
	return &other
}

func forAnHour(spec *kustomizev1.KustomizationSpec) {
	spec.Path, spec.Timeout = endless, &metav1.Duration{Duration: time.Hour}
}

// TestOneTenantNeverHasAllPlaces: with more builds under way than one tenant may
// have, none of which ends, another tenant's commit is applied.
func TestOneTenantNeverHasAllPlaces(t *testing.T) {
	w, builds := newEndlessWorld(t)
	w.commit(map[string]string{"app/config.yaml": configMaps(1)})
	for n := range 10 {
		w.kustomization(fmt.Sprintf("attack-%d", n), forAnHour)
	}
	for range 4 {
		<-builds.began
	}
	other := w.neighbour()
	other.kustomization("app")
	revision := other.commit(map[string]string{"app/config.yaml": configMaps(1)})
	other.ready("app", revision)
	if len(builds.ended) > 0 {
		t.Errorf("the build of %s was ended for it", <-builds.ended)
	}
}

// TestARunEndsWithItsObject: a run ends when the spec of its Kustomization changes or it
// is deleted, whatever its timeout.
func TestARunEndsWithItsObject(t *testing.T) {
	cases := map[string]func(w *world, revision string){
		"another spec": func(w *world, revision string) {
			w.change("app", func(spec *kustomizev1.KustomizationSpec) { spec.Path = "./app" })
			w.ready("app", revision)
		},
		"deletion": func(w *world, _ string) {
			if err := w.Hub.Delete(w.t.Context(), w.get("app")); err != nil {
				w.t.Fatal(err)
			}
			w.until("gone", func() (bool, string) {
				var left kustomizev1.KustomizationList
				if err := w.Hub.List(w.t.Context(), &left, client.InNamespace(w.namespace)); err != nil {
					w.t.Fatal(err)
				}
				return len(left.Items) == 0, fmt.Sprint(len(left.Items), " left")
			})
		},
	}
	for name, end := range cases {
		t.Run(name, func(t *testing.T) {
			w, builds := newEndlessWorld(t)
			revision := w.commit(map[string]string{"app/config.yaml": configMaps(1)})
			w.kustomization("app", forAnHour)
			<-builds.began
			end(w, revision)
			<-builds.ended
		})
	}
}

// gate blocks callers until it opens, and counts those that are under way.
type gate struct {
	opens     <-chan struct{}
	came      chan struct{} // has room for all
	now, most atomic.Int64
}

func newGate(opens <-chan struct{}) *gate {
	return &gate{opens: opens, came: make(chan struct{}, 1000)}
}

// pass returns when the gate is open; the caller calls done once.
func (g *gate) pass() (done func()) {
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
	g.came <- struct{}{}
	<-g.opens
	return func() { g.now.Add(-1) }
}

// slowChecks blocks the dry runs in a namespace.
type slowChecks struct {
	http.RoundTripper
	namespace string
	*gate
}

// RoundTrip implements http.RoundTripper.
func (s slowChecks) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.Path, "/namespaces/"+s.namespace+"/") && req.URL.Query().Has("dryRun") {
		defer s.pass()()
	}
	return s.RoundTripper.RoundTrip(req)
}

// slowBuilds blocks the builds of a namespace.
type slowBuilds struct {
	apply.Builder
	namespace string
	*gate
}

func (b slowBuilds) Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error) {
	if in.Kustomization.Namespace == b.namespace {
		defer b.pass()()
	}
	return b.Builder.Build(ctx, in)
}

// TestOneTenantHasFewPlaces: whatever a tenant commits, and to how many
// Kustomizations, no more of it is built or compared at a time than it has places;
// another one's commit is applied meanwhile.
func TestOneTenantHasFewPlaces(t *testing.T) {
	cases := map[string]struct {
		hold func(w *world, g *gate)
		most int64
	}{
		"to build in": {func(w *world, g *gate) {
			w.around = func(inner apply.Builder) apply.Builder { return slowBuilds{inner, w.namespace, g} }
		}, 1},
		"to compare with the hub": {func(w *world, g *gate) {
			w.wrap = func(inner http.RoundTripper) http.RoundTripper { return slowChecks{inner, w.namespace, g} }
		}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			opens := make(chan struct{})
			g := newGate(opens)
			w.stop()
			tc.hold(w, g)
			w.opts.Places = places.New(places.Options{Alone: 2, Shared: 1})
			w.start()
			revision := w.commit(map[string]string{"app/config.yaml": configMaps(20)})
			names := []string{"one", "two", "three"}
			for _, name := range names {
				w.kustomization(name, func(spec *kustomizev1.KustomizationSpec) { spec.NamePrefix = name + "-" })
			}
			<-g.came
			other := w.neighbour()
			other.kustomization("app")
			other.ready("app", other.commit(map[string]string{"app/config.yaml": configMaps(1)}))
			close(opens)
			for _, name := range names {
				w.ready(name, revision)
			}
			// Fewer than the most is fine: Kustomizations of other tests may count as other tenants with runs.
			if got := g.most.Load(); got < 1 || got > tc.most {
				t.Errorf("%d at a time, at most %d may be", got, tc.most)
			}
		})
	}
}
