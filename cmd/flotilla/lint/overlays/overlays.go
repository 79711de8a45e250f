// Package overlays builds the Kustomizations in a folder as the control plane does.
//
// In go a folder and its Kustomizations, sources and values; out come the objects that each Kustomization builds, or
// why it cannot be built. Kustomizations among the built objects are built as well. It reads files below the
// repository's root, makes no requests, and writes nothing.
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

// mostBuilds is how many Kustomizations of a folder are built at most.
const mostBuilds = 10_000

// Input is what is known about a folder. All objects in it have a namespace.
type Input struct {
	// Folder is the path of the folder.
	Folder string
	// Kustomizations are those of the files, in the order in which they are built.
	Kustomizations []Kustomization
	// Sources are those in the files, and which files each takes.
	Sources map[inventory.Source]artifact.Selection
	// Values are the ConfigMaps and Secrets in the files.
	Values Values
}

// Kustomization is one in a file.
type Kustomization struct {
	*kustomizev1.Kustomization
	// Base is true if it may be a patch, or be patched: it is built only if no build result has one of its name.
	Base bool
}

// Result is the result of one Kustomization.
type Result struct {
	// Of is the Kustomization, and From the index of the one in the Input that is, or that led to, it.
	Of   *kustomizev1.Kustomization
	From int
	// Objects are the built objects. If Unknown is not empty, variables in them are not replaced.
	Objects []*unstructured.Unstructured
	// Unknown are the ConfigMaps and Secrets of its variables that are not in the files: "ConfigMap flux-system/vars".
	Unknown []string
	// Err is why it cannot be built; nil if it can.
	Err error
	// Doubt is true if the folder may not be that of its source, because no path exists in it.
	Doubt bool
}

// Build builds all Kustomizations whose source is the folder's repository, and counts the others. Errors of single
// Kustomizations are in the results.
func Build(ctx context.Context, in Input) (results []Result, others int, err error) {
	b := &building{in: in, root: rootOf(in), by: build.New(build.Limits{}), trees: map[inventory.Source]*build.Tree{}, met: map[string]bool{}, names: map[string]bool{}}
	only := b.ownSources()
	for _, bases := range []bool{false, true} {
		for i, ks := range in.Kustomizations {
			switch {
			case ks.Base != bases, bases && b.names[ks.Name]:
			case !b.own[inventory.SourceOf(ks.Kustomization)] && !only || ks.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind: // what an artifact was packed from, the files do not say
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
	own     map[inventory.Source]bool // sources with a path that exists below the root
	by      *build.Builder
	trees   map[inventory.Source]*build.Tree
	met     map[string]bool
	names   map[string]bool // of Kustomizations that something has built
	results []Result
}

// add builds a Kustomization, and those among the built objects.
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
	r.Objects, r.Err = builder.FromFiles(ctx, b.by, tree, builder.Input{Kustomization: ks, As: b.in.Values, Encrypted: withheld})
	if ks.Spec.KubeConfig != nil { // they go to a cluster outside of the fleet, where other rules hold: that they can be built is all that is known
		r.Objects = nil
	}
	return r
}

// withheld has encrypted files built with stand-ins for what they hold: nobody needs the key to check them.
func withheld(string) {}

// tree returns the files that a source would fetch.
func (b *building) tree(ctx context.Context, source inventory.Source) (*build.Tree, error) {
	var selection artifact.Selection
	key := inventory.Source{} // for all sources that are not in the files
	if known, found := b.in.Sources[source]; found {
		key, selection = source, known
	}
	if tree := b.trees[key]; tree != nil {
		return tree, nil
	}
	files, err := collected(ctx, b.root, selection)
	if err != nil {
		return nil, err
	}
	b.trees[key] = build.NewTree(files.Contents()).WithLinks(files.Links())
	return b.trees[key], nil
}

// collected returns the files of a folder that a source would fetch. What somebody puts a link in the place of meanwhile leads nowhere else.
func collected(ctx context.Context, folder string, selection artifact.Selection) (artifact.Files, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return artifact.Collect(ctx, root.FS(), selection, artifact.Limits{})
}

// ownSources finds the sources that stand for the repository itself: those with a path that exists in it. only is true
// if there is a single source, which may be the repository in any case.
func (b *building) ownSources() (only bool) {
	all := map[inventory.Source]bool{}
	b.own = map[inventory.Source]bool{}
	for _, ks := range b.in.Kustomizations {
		source := inventory.SourceOf(ks.Kustomization)
		all[source] = true
		if isBelow(b.root, ks.Spec.Path) {
			b.own[source] = true
		}
	}
	return len(all) == 1
}

// rootOf returns the folder that is the root of the source: of the given folder and its parents up to the top of the
// Git repository, the uppermost one below which most paths exist. If no path exists, it is the given folder.
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

// Holds reports whether a folder, or the repository that it is in, has the path of a Kustomization. One that applies all
// of a repository has to be given all of it.
func Holds(folder string, ks *kustomizev1.Kustomization) bool {
	if path.Clean("/"+ks.Spec.Path) == "/" {
		return exists(filepath.Join(folder, ".git"))
	}
	return isBelow(rootOf(Input{Folder: folder, Kustomizations: []Kustomization{{Kustomization: ks}}}), ks.Spec.Path)
}

// isBelow reports whether a path is an existing folder below a root, and not the root itself.
func isBelow(root, name string) bool {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return name != "" && err == nil && info.IsDir()
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// kustomizationsIn returns the Kustomizations among objects. Those without a namespace get the given one.
func kustomizationsIn(objects []*unstructured.Unstructured, namespace string) []*kustomizev1.Kustomization {
	var out []*kustomizev1.Kustomization
	for _, obj := range objects {
		if ks := Of(obj.Object, namespace); ks != nil {
			out = append(out, ks)
		}
	}
	return out
}

// Of returns an object as a Kustomization, in the given namespace if it has none; nil if it is no Kustomization or
// cannot be read.
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
