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

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// maxBytes is how much is read of one file.
const maxBytes = 100 << 20

// reading reads files that no Kustomization is named for.
type reading struct {
	// namespace is that of objects that name none.
	namespace string
	scope     forecast.Scope
	stdin     io.Reader
}

// objects returns what is on a side of the change.
func (r *reading) objects(ctx context.Context, of side) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if of.files != nil {
		found, err := r.built(ctx, of.name, of.files)
		if err != nil {
			return nil, err
		}
		out = found
	}
	for _, path := range of.paths {
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
		if obj.GetNamespace() == "" && r.scope.Namespaced(obj, out) {
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
		return nil, nothingAt(path)
	case err != nil:
		return nil, err
	case info.IsDir():
		files, err := collect(ctx, path, artifact.Selection{})
		if err != nil {
			return nil, err
		}
		return r.built(ctx, path, files)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	out, err := documents(path, file)
	return out, errors.Join(err, file.Close())
}

func nothingAt(path string) error {
	return command.Usage(fmt.Errorf("there is no file or folder %s", path))
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

// collect reads a folder as a source takes it.
func collect(ctx context.Context, path string, selection artifact.Selection) (artifact.Files, error) {
	files, err := artifact.Collect(ctx, os.DirFS(path), selection, artifact.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return files, nil
}

// tree returns files as they are built.
func tree(files artifact.Files) *build.Tree {
	return build.NewTree(files.Contents()).WithLinks(files.Links())
}

// built builds files as a Kustomization would that has their folder as its path.
func (r *reading) built(ctx context.Context, name string, files artifact.Files) ([]*unstructured.Unstructured, error) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "files"}}
	out, err := builder.FromFiles(ctx, build.New(build.Limits{}), tree(files), builder.Input{Kustomization: ks, As: nothing{}, Encrypted: func(string) {}})
	if err != nil {
		return nil, fmt.Errorf("%s cannot be built: %w", name, err)
	}
	for _, obj := range out {
		disown(obj)
	}
	return out, nil
}

// disown removes the labels of an owner.
func disown(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	for key := range inventory.OwnerLabels(client.ObjectKey{}) {
		delete(labels, key)
	}
	if len(labels) == 0 {
		labels = nil
	}
	obj.SetLabels(labels)
}

// nothing is a client.Reader for those who have none.
type nothing struct{ client.Reader }
