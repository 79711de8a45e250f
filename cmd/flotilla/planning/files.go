package planning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// maxBytes is how much is read of one file.
const maxBytes = 100 << 20

// reading reads files as a Kustomization applies them.
type reading struct {
	// of is the Kustomization that builds folders; nil where none is named, and each folder is built as it is.
	of *kustomizev1.Kustomization
	// as reads variables.
	as client.Reader
	// namespace is that of objects that name none.
	namespace string
	// scope reports whether a kind has namespaces, and whether that is known.
	scope func(apiVersion, kind string) (namespaced, known bool)
	stdin io.Reader
}

// objects returns what is in files and folders.
func (r *reading) objects(ctx context.Context, paths []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, path := range paths {
		found, err := r.path(ctx, path)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for _, obj := range out {
		if obj.GetName() == "" {
			return nil, fmt.Errorf("a %s has no name: name it under metadata.name", obj.GetKind())
		}
		if obj.GetNamespace() == "" && r.namespaced(obj, out) {
			obj.SetNamespace(r.namespace)
		}
	}
	return out, nil
}

func (r *reading) path(ctx context.Context, path string) ([]*unstructured.Unstructured, error) {
	if path == "-" {
		return documents(path, r.stdin)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, command.Usage(fmt.Errorf("there is no file or folder %s", path))
	case err != nil:
		return nil, err
	case info.IsDir():
		return r.folder(ctx, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	out, err := documents(path, file)
	return out, errors.Join(err, file.Close())
}

// documents reads the objects of a file.
func documents(name string, in io.Reader) ([]*unstructured.Unstructured, error) {
	content, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	if err == nil && len(content) > maxBytes {
		err = fmt.Errorf("has more than %d MiB", maxBytes>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	docs, err := build.Read(content, build.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var out []*unstructured.Unstructured
	for _, doc := range docs {
		obj := &unstructured.Unstructured{Object: doc.Fields}
		if obj.GetAPIVersion() == "" || obj.GetKind() == "" {
			return nil, fmt.Errorf("%s:%d: is no Kubernetes object: apiVersion or kind is missing", name, doc.Line)
		}
		out = append(out, obj)
	}
	return out, nil
}

// folder builds a folder as the Kustomization would, or as one would that has the folder as its path.
func (r *reading) folder(ctx context.Context, path string) ([]*unstructured.Unstructured, error) {
	files, err := artifact.Collect(ctx, os.DirFS(path), artifact.Selection{}, artifact.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ks := r.of
	if ks == nil {
		ks = &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "files"}}
	}
	out, err := builder.FromFiles(ctx, build.New(build.Limits{}), build.NewTree(files.Contents()).WithLinks(files.Links()), builder.Input{
		Kustomization: ks, As: r.as, Encrypted: func(string) {},
	})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be built: %w", path, err)
	}
	if r.of == nil {
		for _, obj := range out {
			disown(obj)
		}
	}
	return out, nil
}

// Labels by which an object names the Kustomization that applies it.
var owners = []string{kustomizev1.GroupVersion.Group + "/name", kustomizev1.GroupVersion.Group + "/namespace"}

// disown removes the labels of an owner.
func disown(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	for _, key := range owners {
		delete(labels, key)
	}
	if len(labels) == 0 {
		labels = nil
	}
	obj.SetLabels(labels)
}

// namespaced reports whether an object is in a namespace: as the control plane says, or else a definition among the
// objects, or Kubernetes' own schema. A kind about which nothing is known has namespaces.
func (r *reading) namespaced(obj *unstructured.Unstructured, among []*unstructured.Unstructured) bool {
	gvk := obj.GroupVersionKind()
	if r.scope != nil {
		if is, known := r.scope(obj.GetAPIVersion(), obj.GetKind()); known {
			return is
		}
	}
	for _, definition := range among {
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		if definition.GetKind() == "CustomResourceDefinition" && group == gvk.Group && kind == gvk.Kind {
			scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
			return scope != "Cluster"
		}
	}
	switch gvk.Group {
	case "policy.karmada.io":
		return len(gvk.Kind) < 7 || gvk.Kind[:7] != "Cluster"
	case "config.karmada.io", "cluster.karmada.io":
		return false
	}
	is, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind()})
	return is || !known
}
