// Package overlays builds what Kustomizations make of the folder that they are written in, as the control plane does.
//
// In go a folder, and the Kustomizations, sources and values that are known of it; out comes what each builds, or why it
// cannot be built. Kustomizations that come out are built, too. It reads files below the repository's root, asks no server,
// and writes nothing.
package overlays

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// mostBuilds is how many Kustomizations are built of a folder.
const mostBuilds = 10_000

// Input is what is known of a folder. Everything names its namespace.
type Input struct {
	// Folder is where the others were found.
	Folder string
	// Kustomizations are those of the files, in the order in which they are built.
	Kustomizations []Kustomization
	// Sources are those that the files hold.
	Sources []*sourcev1.GitRepository
	// Values are the ConfigMaps and Secrets of the files.
	Values Values
}

// Kustomization is one of a file.
type Kustomization struct {
	*kustomizev1.Kustomization
	// Base says that it may be a patch, or be patched: it is built only where nothing that is built brings one of its name.
	Base bool
}

// Result is what one Kustomization comes to.
type Result struct {
	// Of is the Kustomization, and From the index of that of the Input that it came by: its own, where it is one of those.
	Of   *kustomizev1.Kustomization
	From int
	// Objects are what it builds. Where Unknown is not empty, variables are in them as they are written.
	Objects []*unstructured.Unstructured
	// Unknown are the ConfigMaps and Secrets of its variables that are not in the files: "ConfigMap flux-system/vars".
	Unknown []string
	// Err says why it cannot be built; nil if it can.
	Err error
	// Doubt says that the folder may not be that of its source: no path shows it.
	Doubt bool
}

// Build builds all Kustomizations whose source is the folder's repository, and counts the others. An error is not about a
// Kustomization.
func Build(ctx context.Context, in Input) (results []Result, others int, err error) {
	b := &building{in: in, root: rootOf(in), by: build.New(build.Limits{}), trees: map[client.ObjectKey]*build.Tree{}, met: map[string]bool{}, names: map[string]bool{}}
	only := b.ownSources()
	for _, bases := range []bool{false, true} {
		for i, ks := range in.Kustomizations {
			switch {
			case ks.Base != bases, bases && b.names[ks.Name]:
			case !b.own[inventory.SourceOf(ks.Kustomization)] && !only || ks.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind:
				others++
			default:
				if err := b.add(ctx, ks.Kustomization, i); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	return b.results, others, nil
}

// building is one Build.
type building struct {
	in      Input
	root    string
	own     map[client.ObjectKey]bool // sources of which the root has a path
	by      *build.Builder
	trees   map[client.ObjectKey]*build.Tree
	met     map[string]bool
	names   map[string]bool // of Kustomizations that something has built
	results []Result
}

// add builds a Kustomization, and those that come out.
func (b *building) add(ctx context.Context, ks *kustomizev1.Kustomization, from int) error {
	next := []*kustomizev1.Kustomization{ks}
	for len(next) > 0 {
		ks, next = next[0], next[1:]
		text, err := json.Marshal(ks.Spec)
		if err != nil {
			return fmt.Errorf("compare Kustomization %s: %w", ks.Name, err)
		}
		id := client.ObjectKeyFromObject(ks).String() + string(text)
		if b.met[id] || len(b.results) == mostBuilds {
			continue
		}
		b.met[id] = true
		r := b.build(ctx, ks, from)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.results = append(b.results, r)
		for _, child := range kustomizationsIn(r.Objects, ks.Namespace) {
			b.names[child.Name] = true
			if inventory.SourceOf(child) == inventory.SourceOf(ks) {
				next = append(next, child)
			}
		}
	}
	return nil
}

func (b *building) build(ctx context.Context, ks *kustomizev1.Kustomization, from int) Result {
	r := Result{Of: ks, From: from, Unknown: b.in.Values.missing(ks), Doubt: !b.own[inventory.SourceOf(ks)]}
	if len(r.Unknown) > 0 {
		ks = ks.DeepCopy()
		ks.Spec.PostBuild = nil
	}
	tree, err := b.tree(ctx, inventory.SourceOf(ks))
	if err != nil {
		r.Err = fmt.Errorf("the repository cannot be read as its source would be: %w", err)
		return r
	}
	r.Objects, r.Err = builder.FromFiles(ctx, b.by, tree, builder.Input{Kustomization: ks, As: b.in.Values})
	return r
}

// tree returns the files that a source would fetch.
func (b *building) tree(ctx context.Context, source client.ObjectKey) (*build.Tree, error) {
	var selection artifact.Selection
	key := client.ObjectKey{} // of all sources that the files do not have
	for _, known := range b.in.Sources {
		if client.ObjectKeyFromObject(known) == source {
			key, selection = source, artifact.Selection{Ignore: known.Spec.Ignore, Directories: known.Spec.SparseCheckout}
		}
	}
	if tree := b.trees[key]; tree != nil {
		return tree, nil
	}
	files, err := artifact.Collect(ctx, os.DirFS(b.root), selection, artifact.Limits{})
	if err != nil {
		return nil, err
	}
	b.trees[key] = build.NewTree(files.Contents())
	return b.trees[key], nil
}

// ownSources finds the sources that stand for the repository itself: those of which it has a path. Where there is only one
// source, that may be it in any case.
func (b *building) ownSources() (only bool) {
	all := map[client.ObjectKey]bool{}
	b.own = map[client.ObjectKey]bool{}
	for _, ks := range b.in.Kustomizations {
		source := inventory.SourceOf(ks.Kustomization)
		all[source] = true
		if isBelow(b.root, ks.Spec.Path) {
			b.own[source] = true
		}
	}
	return len(all) == 1
}

// rootOf is the folder that stands for the source: of the one that was given and those above it, up to the top of its Git
// repository, the uppermost of which most paths are. Where no path shows it, it is the one that was given.
func rootOf(in Input) string {
	folder, err := filepath.Abs(in.Folder)
	if err != nil {
		return in.Folder
	}
	candidates := []string{folder}
	for !exists(filepath.Join(candidates[0], ".git")) {
		above := filepath.Dir(candidates[0])
		if above == candidates[0] { // there is no repository
			return folder
		}
		candidates = slices.Insert(candidates, 0, above)
	}
	count := func(root string) (n int) {
		for _, ks := range in.Kustomizations {
			if isBelow(root, ks.Spec.Path) {
				n++
			}
		}
		return n
	}
	best := slices.MaxFunc(candidates, func(a, b string) int { return cmp.Compare(count(a), count(b)) }) // the first of equals
	if count(best) == 0 {
		return folder
	}
	return best
}

// isBelow reports whether a path is that of a folder below a root, and not the root.
func isBelow(root, name string) bool {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return name != "" && err == nil && info.IsDir()
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// kustomizationsIn are the Kustomizations among objects; one that names no namespace is in that of whoever applies it.
func kustomizationsIn(objects []*unstructured.Unstructured, namespace string) []*kustomizev1.Kustomization {
	var out []*kustomizev1.Kustomization
	for _, obj := range objects {
		if ks := Of(obj.Object, namespace); ks != nil {
			out = append(out, ks)
		}
	}
	return out
}

// Of returns the Kustomization that an object is, in a namespace if it names none; nil if it is none, or none that can be
// read.
func Of(fields map[string]any, namespace string) *kustomizev1.Kustomization {
	obj := &unstructured.Unstructured{Object: fields}
	ks := &kustomizev1.Kustomization{}
	if obj.GroupVersionKind() != kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind) ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(fields, ks) != nil {
		return nil
	}
	ks.Namespace = cmp.Or(ks.Namespace, namespace)
	return ks
}
