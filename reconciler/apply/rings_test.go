package apply_test

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
)

// ring are Kustomizations, each of which hands an object to the next one, and the last to the first.
var ring = []string{"one", "two", "three"}

// turned are the files of the ring after some turns: each has an object of its own, and one that comes from the one before.
func turned(turns int) map[string]string {
	out := map[string]string{}
	for i, name := range ring {
		out[name+"/config.yaml"] = named("of-"+name, "goes-"+ring[(i+len(ring)-turns%len(ring))%len(ring)])
	}
	return out
}

// Objects that move in a ring are not deleted, and nobody waits for ever, whoever depends on whom.
func TestObjectsThatMoveInARing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.KustomizationSpec)
		on     map[string]string // what each depends on
	}{
		"nobody waits for another one":               {},
		"each waits for health":                      {change: waiting},
		"each depends on the one that gives to it":   {on: map[string]string{"two": "one", "three": "two"}},
		"each depends on the one that takes from it": {on: map[string]string{"one": "two", "two": "three"}},
		"each depends on who gives, and waits, too":  {change: waiting, on: map[string]string{"two": "one", "three": "two"}},
		"each depends on who takes, and waits, too":  {change: waiting, on: map[string]string{"one": "two", "two": "three"}},
		"two depend on the first, and all wait":      {change: waiting, on: map[string]string{"three": "one", "two": "one"}},
		"two depend on the last, and all wait":       {change: waiting, on: map[string]string{"one": "three", "two": "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.commit(turned(0))
			for _, name := range ring {
				w.kustomization(name, in("./"+name), func(spec *kustomizev1.KustomizationSpec) {
					if tc.change != nil {
						tc.change(spec)
					}
					if on := tc.on[name]; on != "" {
						spec.DependsOn = []kustomizev1.DependencyReference{{Name: on}}
					}
				})
			}
			var all []string
			for _, name := range ring {
				w.ready(name, first)
				all = append(all, "of-"+name, "goes-"+name)
			}
			want := w.uids(all...)
			for turn := 1; turn <= len(ring); turn++ {
				revision := w.commit(turned(turn))
				for i, name := range ring {
					w.ready(name, revision)
					w.holds(name, "goes-"+ring[(i+len(ring)-turn%len(ring))%len(ring)], "of-"+name)
				}
				if diff := cmp.Diff(want, w.uids(all...)); diff != "" {
					t.Errorf("the objects after %d turns (-before +after):\n%s", turn, diff)
				}
			}
		})
	}
}

// dependent is the manifest of a child that depends on others.
func dependent(name string, on ...string) string {
	var refs []string
	for _, on := range on {
		refs = append(refs, "{name: "+on+"}")
	}
	return "---\n" + strings.Replace(child(name, name), "prune: true", "prune: true, dependsOn: ["+strings.Join(refs, ", ")+"]", 1)
}

// runs is how often the loop has looked at a Kustomization.
func runs(t *testing.T, registry *prometheus.Registry) uint64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "gotk_reconcile_duration_seconds" {
			return family.GetMetric()[0].GetHistogram().GetSampleCount()
		}
	}
	return 0
}

// Kustomizations that depend on each other in a ring say so, each once, and go on when a commit breaks it.
func TestKustomizationsThatDependOnEachOtherInARing(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := newQuietWorld(t)
	w.stop()
	w.opts.Metrics = registry
	w.start()
	files := map[string]string{"app/config.yaml": named("own")}
	for _, name := range ring {
		files[name+"/config.yaml"] = named("of-" + name)
	}
	files["app/children.yaml"] = dependent("one", "three") + dependent("two", "one") + dependent("three", "two")
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	t.Cleanup(func() {
		for _, name := range ring {
			w.remove(name)
		}
	})
	for _, name := range ring {
		message := w.awaitReason(name, first, dependencies.ReasonCycle)
		for _, other := range ring {
			if !strings.Contains(message, w.namespace+"/"+other) {
				t.Errorf("%s does not name %s: %s", name, other, message)
			}
		}
		if !apimeta.IsStatusConditionTrue(w.get(name).Status.Conditions, meta.StalledCondition) {
			t.Errorf("%s is not stalled", name)
		}
	}
	w.QuietRevision(t)
	before := runs(t, registry)
	w.QuietRevision(t)
	if more := runs(t, registry) - before; before == 0 || more > 0 {
		t.Errorf("%d runs while nothing changes, after %d", more, before)
	}

	files["app/children.yaml"] = dependent("one") + dependent("two", "one") + dependent("three", "two")
	second := w.commit(files)
	for _, name := range append([]string{"web"}, ring...) {
		w.ready(name, second)
	}
}

// Each commit that finds a Kustomization in a ring is tried by it, even one that changes none of its files: its status says
// so, and none of a commit that was applied before.
func TestACommitOfARingIsTriedByAllOfIt(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/children.yaml": dependent("one") + dependent("two", "one"), "one/config.yaml": named("a"), "two/config.yaml": named("b")}
	first := w.commit(files)
	w.kustomization("web")
	t.Cleanup(func() { w.remove("one"); w.remove("two") })
	for _, name := range []string{"web", "one", "two"} {
		w.ready(name, first)
	}
	files["app/children.yaml"] = dependent("one", "two") + dependent("two", "one")
	w.awaitReason("one", w.commit(files), dependencies.ReasonCycle)
	files["readme"] = "says nothing of it"
	next := w.commit(files)
	for _, name := range []string{"one", "two"} {
		w.awaitReason(name, next, dependencies.ReasonCycle)
	}
	files["app/children.yaml"] = dependent("one") + dependent("two", "one")
	mended := w.commit(files)
	for _, name := range []string{"web", "one", "two"} {
		w.ready(name, mended)
	}
}

// A Kustomization that waits for the health of a child which depends on it waits for itself: the child names both, and so
// does the parent, long before the time for health is up.
func TestAChildThatDependsOnItsParentThatWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(w *world) func(*kustomizev1.KustomizationSpec)
		children string
	}{
		"a child of a parent with spec.wait": {func(*world) func(*kustomizev1.KustomizationSpec) { return waiting }, dependent("one", "web")},
		"a child that is in spec.healthChecks": {func(w *world) func(*kustomizev1.KustomizationSpec) {
			return func(spec *kustomizev1.KustomizationSpec) {
				spec.HealthChecks = []meta.NamespacedObjectKindReference{{APIVersion: kustomizev1.GroupVersion.String(), Kind: "Kustomization", Namespace: w.namespace, Name: "one"}}
			}
		}, dependent("one", "web")},
		"a child that depends on it by another one": {func(*world) func(*kustomizev1.KustomizationSpec) { return waiting }, dependent("one", "two") + dependent("two", "web")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			files := map[string]string{"app/children.yaml": tc.children, "one/config.yaml": named("a"), "two/config.yaml": named("b")}
			first := w.commit(files)
			w.kustomization("web", tc.change(w))
			t.Cleanup(func() { w.remove("one"); w.remove("two") })
			w.until("the child is made", func() (bool, string) {
				return w.object(kustomizev1.GroupVersion.String(), "Kustomization", w.namespace, "one") != nil, ""
			})
			message := w.awaitReason("one", first, dependencies.ReasonCycle)
			if want := fmt.Sprintf("%s/web waits for the health of ", w.namespace); !strings.Contains(message, want) {
				t.Errorf("message = %s\nwant %s", message, want)
			}
			if message := w.awaitReason("web", first, meta.HealthCheckFailedReason); !strings.Contains(message, "Kustomization/"+w.namespace+"/one") {
				t.Errorf("the parent says %s", message)
			}
			files["app/children.yaml"] = dependent("one") + dependent("two", "one")
			second := w.commit(files)
			for _, name := range []string{"web", "one", "two"} {
				w.ready(name, second)
			}
		})
	}
}
