package lint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// builds checks what the Kustomizations of folders build.
type builds struct{ *linter }

// all builds each folder.
func (l builds) all(ctx context.Context) error {
	folders := map[string][]*object{}
	for _, folder := range l.opts.Folders {
		folders[folder] = nil
	}
	var all []kustomization
	var results []built
	for _, o := range l.objects {
		ks := overlays.Of(o.doc.Fields, l.opts.Namespace)
		switch folder := l.folderOf(o, ks); {
		case folder != "":
			folders[folder] = append(folders[folder], o)
		case ks != nil && o.name != "":
			all = append(all, kustomization{ks, o, ""})
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		found, of, err := l.folder(ctx, folder, folders[folder])
		if err != nil {
			return err
		}
		all, results = append(all, found...), append(results, of...)
	}
	shared(l.linter, results)
	return dependencies(ctx, l.linter, all, results)
}

// folderOf returns the folder with which an object is built; empty for none. What is in files that were given by name is
// built with the folder, where there is just one: with a Kustomization only if that has its path.
func (l builds) folderOf(o *object, ks *kustomizev1.Kustomization) string {
	if o.folder != "" || len(l.opts.Folders) != 1 {
		return o.folder
	}
	if folder := l.opts.Folders[0]; ks == nil || overlays.Holds(folder, ks) {
		return folder
	}
	return ""
}

// folder builds one folder, and returns its Kustomizations, those that it builds, and their results.
func (l builds) folder(ctx context.Context, folder string, objects []*object) ([]kustomization, []built, error) {
	in, from := overlays.Input{Folder: folder, Sources: map[inventory.Source]artifact.Selection{}}, []*object{}
	for _, o := range objects {
		in.Values.Add(o.doc.Fields, l.opts.Namespace)
		if ks := overlays.Of(o.doc.Fields, l.opts.Namespace); ks != nil && o.name != "" && !o.patch {
			in.Kustomizations, from = append(in.Kustomizations, overlays.Kustomization{Kustomization: ks, Base: o.kustomize}), append(from, o)
		}
		if source, selection, is := l.sourceOf(o); is {
			in.Sources[source] = selection
		}
	}
	if len(from) == 0 {
		return nil, nil, l.applications(ctx, folder)
	}
	results, others, err := overlays.Build(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	l.report.Built += len(results)
	l.report.Unbuilt += others
	var out []kustomization
	var came []built
	made := map[string]bool{}
	for _, r := range results {
		found, err := l.result(r, from[r.From])
		if err != nil {
			return nil, nil, err
		}
		came = append(came, built{r, from[r.From], r.Of != in.Kustomizations[r.From].Kustomization})
		for _, ks := range found {
			made[ks.Name] = true
		}
		out = append(out, found...)
	}
	for i, ks := range in.Kustomizations {
		if !ks.Base || !made[ks.Name] {
			out = slices.Insert(out, 0, kustomization{ks.Kustomization, from[i], ""})
		}
	}
	return out, came, nil
}

// sourceOf returns which source an object is, and which files it takes; false if it is none or cannot be read.
func (l builds) sourceOf(o *object) (inventory.Source, artifact.Selection, bool) {
	kind, followed := origins.KindOf(o.gvk.Kind)
	if !followed || o.gvk.GroupVersion() != sourcev1.GroupVersion {
		return inventory.Source{}, artifact.Selection{}, false
	}
	source := kind.New()
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.doc.Fields, source) != nil {
		return inventory.Source{}, artifact.Selection{}, false // the check of the schema reports that
	}
	at, facts := origins.Of(source), origins.FactsOf(source)
	at.Namespace = cmp.Or(at.Namespace, l.opts.Namespace)
	return at, artifact.Selection{Ignore: facts.Ignore, Directories: facts.Directories}, true
}

// result checks the result of one Kustomization, and returns the Kustomizations in it.
func (l builds) result(r overlays.Result, at *object) ([]kustomization, error) {
	by := fmt.Sprintf("Kustomization %s/%s", r.Of.Namespace, r.Of.Name)
	if r.Err != nil {
		message := "cannot be built: " + r.Err.Error()
		if at.name != r.Of.Name {
			message = by + " " + message
		}
		if r.Doubt {
			l.add(at, Warning, "spec.path", message+"; ignore this if its source is another repository")
			return nil, nil
		}
		l.add(at, Error, "spec.path", message)
		return nil, nil
	}
	for _, name := range r.Unknown {
		l.add(at, Warning, "spec.postBuild.substituteFrom", name+" is not in these files: it was built without variables, and what they are put into was not checked")
	}
	var made []kustomization
	var objects []*object
	for _, obj := range r.Objects {
		o := madeAt(obj, at, fmt.Sprintf(", as %s builds it from %s", by, shownPath(r.Of)))
		if ks := overlays.Of(obj.Object, r.Of.Namespace); ks != nil {
			made = append(made, kustomization{ks, at, o.by})
		}
		if len(r.Unknown) == 0 {
			objects = append(objects, o)
		}
	}
	return made, l.take(objects)
}

// take checks built objects.
func (l builds) take(objects []*object) error {
	for _, o := range objects {
		if err := l.schema(o); err != nil {
			return err
		}
	}
	l.judge(objects)
	l.made = append(l.made, objects...)
	return nil
}

// madeAt returns the object for one that a Kustomization in a file builds.
func madeAt(obj *unstructured.Unstructured, at *object, by string) *object {
	o := &object{file: at.file, doc: build.Document{Number: at.doc.Number, Line: at.doc.Line, Fields: obj.Object}, gvk: obj.GroupVersionKind(), name: obj.GetName(), by: by}
	o.namespace = o.shown()
	return o
}

// schema reads an object and checks it against the schema of its kind.
func (l *linter) schema(o *object) error {
	if o.gvk == clusterv1alpha1.GroupVersion.WithKind("Cluster") {
		l.cluster(o)
		return nil
	}
	return l.known(o)
}

func shownPath(ks *kustomizev1.Kustomization) string {
	return "./" + strings.Trim(strings.TrimPrefix(ks.Spec.Path, "."), "/")
}

// findingKey identifies a finding, wherever it is.
type findingKey struct {
	kind          schema.GroupVersionKind
	name          string
	path, message string
}
