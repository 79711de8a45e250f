package overlays

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Application is a folder with a kustomization that no other one uses.
type Application struct {
	// File is its kustomization, below the given folder, and Path the folder of that: "./production".
	File, Path string
	// Objects are what it builds.
	Objects []*unstructured.Unstructured
	// Err says why it cannot be built; nil if it can.
	Err error
	// Outside is true if it was not built because it uses files outside of the folder and there is no repository.
	Outside bool
}

// Standing builds the applications of a folder, as a Kustomization with the path of each would. Errors of single
// applications are in the results.
func Standing(ctx context.Context, folder string) ([]Application, error) {
	found, err := kustomizedIn(folder)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	root, outside, err := rootFor(folder, found)
	if err != nil {
		return nil, err
	}
	var tree *build.Tree
	var unread error
	if !outside {
		files, err := collected(ctx, root, artifact.Selection{})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			unread = fmt.Errorf("the folder cannot be read as a source would be: %w", err)
		} else {
			tree = build.NewTree(files.Contents()).WithLinks(files.Links())
		}
	}
	by := build.New(build.Limits{})
	var out []Application
	for _, k := range tops(found) {
		a := Application{File: k.file, Outside: outside, Err: unread}
		shown, err := filepath.Rel(folder, filepath.Dir(k.file))
		if err != nil {
			return nil, err
		}
		a.Path = "./" + strings.TrimPrefix(filepath.ToSlash(shown), ".")
		if tree != nil {
			if a.Objects, a.Err, err = standing(ctx, by, tree, root, k); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out = append(out, a)
	}
	return out, nil
}

// standing builds one application. fault is an error of the application, err any other.
func standing(ctx context.Context, by *build.Builder, tree *build.Tree, root string, k kustomized) (objects []*unstructured.Unstructured, fault, err error) {
	folder, err := filepath.Abs(filepath.Dir(k.file))
	if err != nil {
		return nil, nil, err
	}
	below, err := filepath.Rel(root, folder)
	if err != nil {
		return nil, nil, err
	}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "application"}}
	ks.Spec.Path = filepath.ToSlash(below)
	ks.Spec.Decryption = &kustomizev1.Decryption{Provider: "sops"} // as whatever uses the folder may have it
	objects, fault = builder.FromFiles(ctx, by, tree, builder.Input{Kustomization: ks, As: Values{}, Encrypted: withheld})
	return objects, fault, nil
}

// kustomized is a folder with a kustomization.
type kustomized struct {
	file      string
	component bool
	takes     []string // folders and files that it uses, in the given folder or outside of it
}

// IsKustomization reports whether a file has the name of a kustomization.
func IsKustomization(name string) bool {
	return slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, name)
}

// kustomizedIn finds the kustomizations below a folder, but nothing hidden and no links.
func kustomizedIn(folder string) ([]kustomized, error) {
	var out []kustomized
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != folder && entry.IsDir() && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !IsKustomization(entry.Name()):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		k := kustomized{file: path}
		var of map[string]any
		if yaml.Unmarshal(content, &of) == nil { // the build reports an invalid one
			k.component = of["kind"] == "Component"
			k.takes = named(of, filepath.Dir(path))
		}
		out = append(out, k)
		return nil
	})
	return out, err
}

// named returns the strings of a kustomization that may be paths, joined to a folder.
func named(value any, folder string) []string {
	var out []string
	switch v := value.(type) {
	case string:
		if v != "" && !strings.Contains(v, "\n") && !filepath.IsAbs(v) {
			out = append(out, filepath.Join(folder, v))
		}
	case []any:
		for _, one := range v {
			out = append(out, named(one, folder)...)
		}
	case map[string]any:
		for _, one := range v {
			out = append(out, named(one, folder)...)
		}
	}
	return out
}

// tops returns those that no other one uses; all of them if each is used by another.
func tops(found []kustomized) []kustomized {
	taken := map[string]bool{}
	for _, k := range found {
		for _, path := range k.takes {
			taken[path] = taken[path] || path != filepath.Dir(k.file)
		}
	}
	whole := slices.DeleteFunc(slices.Clone(found), func(k kustomized) bool { return k.component })
	out := slices.DeleteFunc(slices.Clone(whole), func(k kustomized) bool { return taken[filepath.Dir(k.file)] })
	if len(out) == 0 {
		return whole
	}
	return out
}

// rootFor returns the folder, or the top of its Git repository if a kustomization uses files outside of the folder.
// outside is true if there is no repository then.
func rootFor(folder string, found []kustomized) (root string, outside bool, err error) {
	root, err = filepath.Abs(folder)
	if err != nil {
		return "", false, err
	}
	leaves := func(path string) bool {
		at, err := filepath.Abs(path)
		below, relErr := filepath.Rel(root, at)
		return err == nil && relErr == nil && (below == ".." || strings.HasPrefix(below, ".."+string(filepath.Separator))) && exists(at)
	}
	if !slices.ContainsFunc(found, func(k kustomized) bool { return slices.ContainsFunc(k.takes, leaves) }) {
		return root, false, nil
	}
	for at := root; ; at = filepath.Dir(at) {
		if exists(filepath.Join(at, ".git")) {
			return at, false, nil
		}
		if filepath.Dir(at) == at {
			return root, true, nil
		}
	}
}
