package apply_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

// TestForecast: for random commits, by which objects and Kustomizations come, go, move, are renamed and cannot be built any
// more, what was foreseen is what the loop makes of them.
func TestForecast(t *testing.T) {
	w := newWorld(t)
	commits := 40
	if testing.Short() {
		commits = 8
	}
	seed := rand.Uint64()
	if text, given := os.LookupEnv("SEED"); given {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	layout := newLayout()
	w.begin(layout)
	for n := range commits {
		before := layout
		layout = layout.changed(dice)
		files := layout.files()
		foreseen := w.foreseen(files)
		revision := w.commit(files)
		for key := range foreseen.After.Kustomizations {
			w.awaitTried(key, revision)
		}
		want := ownersIn(foreseen.After.Objects)
		w.until(fmt.Sprintf("commit %d as foreseen, from\n%s\nto\n%s\nrisks %v", n, before, layout, foreseen.Risks), func() (bool, string) {
			diff := cmp.Diff(want, ownersIn(w.holdings()))
			return diff == "", "(-foreseen +got):\n" + diff
		})
	}
}

// TestNothingMovesToWhatGoes: the commits of TestForecast have one outcome, whoever comes first.
func TestNothingMovesToWhatGoes(t *testing.T) {
	for seed := range uint64(200) {
		dice, layout := rand.New(rand.NewPCG(seed, 0)), newLayout()
		for n := range 40 {
			before := layout
			layout = layout.changed(dice)
			for name, folder := range layout.configs {
				if was, had := before.configs[name]; (!had || was != folder) && !layout.applies(folder) {
					t.Fatalf("seed %d, commit %d: %s moves to folder %d, which nothing applies any more, from\n%s\nto\n%s", seed, n, name, folder, before, layout)
				}
			}
		}
	}
}

// layout is in which folder each object and each Kustomization is; a Kustomization has the folder of its number.
type layout struct {
	configs, children map[string]int
	broken            map[int]bool
}

const folders, rootFolder = 5, 0

func newLayout() layout {
	return layout{configs: map[string]int{"c0": 0, "c1": 1, "c2": 1, "c3": 2}, children: map[string]int{"k1": 0, "k2": 0}, broken: map[int]bool{}}
}

// changed returns the layout after some random moves.
//
// Nothing moves into the folder of a Kustomization that goes: whether that one applies the commit before it is deleted
// depends on who comes first.
func (l layout) changed(dice *rand.Rand) layout {
	before := l
	l.configs, l.children, l.broken = maps.Clone(l.configs), maps.Clone(l.children), map[int]bool{}
	for range 1 + dice.IntN(5) {
		name, child := fmt.Sprintf("c%d", 1+dice.IntN(9)), 1+dice.IntN(folders-1)
		switch dice.IntN(8) {
		case 0:
			delete(l.configs, name)
		case 1: // a Kustomization goes, and its objects with it or to another one
			delete(l.children, fmt.Sprintf("k%d", child))
		case 2, 3: // it comes, or gets another parent; never below itself
			if parent := dice.IntN(folders); parent < child {
				l.children[fmt.Sprintf("k%d", child)] = parent
			}
		case 4: // all of a folder moves: a Kustomization is renamed
			to := dice.IntN(folders)
			for config, in := range l.configs {
				if in == child {
					l.configs[config] = to
				}
			}
		case 5:
			l.broken[child] = dice.IntN(2) == 0
		default:
			l.configs[name] = dice.IntN(folders)
		}
	}
	for child := range folders { // parents first: what is below one that goes, goes as well
		if key := fmt.Sprintf("k%d", child); moved(before.children, l.children, key) && !l.applies(l.children[key]) {
			delete(l.children, key)
		}
	}
	maps.DeleteFunc(l.configs, func(name string, folder int) bool {
		return moved(before.configs, l.configs, name) && !l.applies(folder)
	})
	l.configs["c0"] = rootFolder
	return l
}

// moved tells whether something is in another folder than before, or new.
func moved(before, now map[string]int, name string) bool {
	was, had := before[name]
	in, has := now[name]
	return has && (!had || was != in)
}

// applies tells whether what is in a folder is applied: the root's, and those of Kustomizations that are in such a folder.
func (l layout) applies(folder int) bool {
	for folder != rootFolder {
		parent, is := l.children[fmt.Sprintf("k%d", folder)]
		if !is {
			return false
		}
		folder = parent
	}
	return true
}

func (l layout) files() map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(l.configs)) {
		out[fmt.Sprintf("f%d/all.yaml", l.configs[name])] += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: NAMESPACE}\n"
	}
	for _, name := range slices.Sorted(maps.Keys(l.children)) {
		out[fmt.Sprintf("f%d/all.yaml", l.children[name])] += "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n" +
			"metadata: {name: " + name + ", namespace: NAMESPACE, annotations: {kustomize.flotilla.io/allow-prune: \"true\"}}\n" +
			"spec: {interval: 10m, retryInterval: 1s, prune: true, path: ./f" + name[1:] + ", sourceRef: {kind: GitRepository, name: fleet}}\n"
	}
	for folder, is := range l.broken {
		if is {
			out[fmt.Sprintf("f%d/broken.yaml", folder)] = "a: b\n"
		}
	}
	return out
}

// String returns the layout, line by line.
func (l layout) String() string {
	return fmt.Sprintf("objects %v, Kustomizations %v, broken %v", l.configs, l.children, l.broken)
}

// begin applies a first layout.
func (w *world) begin(l layout) {
	revision := w.commit(l.files())
	w.kustomization("root", func(spec *kustomizev1.KustomizationSpec) { spec.Path = "./f0" })
	w.annotate("root", inventory.AllowPruneAnnotation, "true")
	w.t.Cleanup(func() {
		for i := 1; i < folders; i++ {
			w.remove(fmt.Sprintf("k%d", i))
		}
	})
	for _, name := range []string{"root", "k1", "k2"} {
		w.awaitTried(client.ObjectKey{Namespace: w.namespace, Name: name}, revision)
	}
}

// awaitTried waits until a Kustomization is there, and has come to an end with a revision, whether or not it could apply it.
func (w *world) awaitTried(key client.ObjectKey, revision string) {
	w.t.Helper()
	w.until(key.Name+" at the end with "+revision, func() (bool, string) {
		var ks kustomizev1.Kustomization
		if err := w.Hub.Get(w.t.Context(), key, &ks); err != nil {
			return false, err.Error()
		}
		c := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		return c != nil && c.Status != "Unknown" && ks.Status.LastAttemptedRevision == revision && c.ObservedGeneration == ks.Generation, fmt.Sprint(c)
	})
}

// foreseen returns what is foreseen of files, by what the control plane holds now.
func (w *world) foreseen(files map[string]string) forecast.Outcome {
	w.t.Helper()
	var all kustomizev1.KustomizationList
	if err := w.Hub.List(w.t.Context(), &all, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var in plan.FleetInput
	for _, obj := range w.holdings() {
		if obj.GetKind() == "ConfigMap" {
			in.Templates = append(in.Templates, obj)
		}
	}
	state, err := forecast.StateOf(in, all.Items)
	if err != nil {
		w.t.Fatal(err)
	}
	contents := map[string][]byte{}
	for name, text := range files {
		contents[name] = []byte(strings.ReplaceAll(text, "NAMESPACE", w.namespace))
	}
	by := build.New(build.Limits{})
	f := &forecast.Forecaster{
		Build: func(ctx context.Context, ks *kustomizev1.Kustomization, tree *build.Tree) ([]*unstructured.Unstructured, error) {
			return builder.FromFiles(ctx, by, tree, builder.Input{Kustomization: ks})
		},
		Eligible: func(*kustomizev1.Kustomization, string) bool { return true },
		Brake:    inventory.DefaultBrake(),
	}
	out, err := f.After(w.t.Context(), forecast.Query{Before: state, Revision: forecast.Revision{
		Source: inventory.GitRepository(client.ObjectKey{Namespace: w.namespace, Name: "fleet"}), Files: build.NewTree(contents),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// holdings returns the ConfigMaps and Kustomizations of the namespace.
func (w *world) holdings() map[inventory.ID]*unstructured.Unstructured {
	w.t.Helper()
	out := map[inventory.ID]*unstructured.Unstructured{}
	add := func(obj client.Object, apiVersion, kind string) {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			w.t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		out[inventory.IDOf(u)] = u
	}
	var configs corev1.ConfigMapList
	var kustomizations kustomizev1.KustomizationList
	for _, list := range []client.ObjectList{&configs, &kustomizations} {
		if err := w.Hub.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range configs.Items {
		add(&configs.Items[i], "v1", "ConfigMap")
	}
	for i := range kustomizations.Items {
		add(&kustomizations.Items[i], kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind)
	}
	return out
}

// ownersIn returns the Kustomization of each object that has one.
func ownersIn(objects map[inventory.ID]*unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	for id, obj := range objects {
		if obj == nil {
			continue
		}
		if owner, has := inventory.OwnerOf(obj); has {
			out[inventory.Describe(id)] = owner.Name
		}
	}
	return out
}
