package customization

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Kind is the kind of customizations.
var Kind = configv1alpha1.GroupVersion.WithKind("ResourceInterpreterCustomization")

// Source is a customization with its place.
type Source struct {
	Customization *configv1alpha1.ResourceInterpreterCustomization
	// File is the file that has it; empty for the control plane.
	File lint.File
	doc  build.Document
}

// Stored returns sources for customizations of the control plane.
func Stored(list []*configv1alpha1.ResourceInterpreterCustomization) []Source {
	out := make([]Source, len(list))
	for i, c := range list {
		out[i].Customization = c
	}
	return out
}

// All returns the customizations of the sources.
func All(sources []Source) []*configv1alpha1.ResourceInterpreterCustomization {
	out := make([]*configv1alpha1.ResourceInterpreterCustomization, len(sources))
	for i, s := range sources {
		out[i] = s.Customization
	}
	return out
}

// String returns the place.
func (s Source) String() string {
	if s.File.Name == "" {
		return "the control plane"
	}
	return fmt.Sprintf("%s:%d", s.File.Name, s.doc.Line)
}

// block matches the header of a literal YAML block, whose text begins on the next line.
var block = regexp.MustCompile(`\|[-+0-9]*\s*(#.*)?$`)

// at returns the place of a line in a script, as exactly as it is known.
func (s Source) at(o Operation, line int) string {
	if s.File.Name == "" {
		return "customization " + s.Customization.Name
	}
	key := s.doc.LineOf("spec.customizations." + o.Field + ".luaScript")
	lines := bytes.Split(s.File.Content, []byte("\n"))
	if line > 0 && key >= 1 && key <= len(lines) && block.Match(lines[key-1]) {
		key += line
	}
	return fmt.Sprintf("%s:%d", s.File.Name, key)
}

// Read returns the customizations in files and skips other objects. Errors name file and
// line.
func Read(files []lint.File) ([]Source, error) {
	var out []Source
	for _, f := range files {
		docs, err := documents(f)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			if gvkOf(doc) != Kind {
				continue
			}
			c := &configv1alpha1.ResourceInterpreterCustomization{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc.Fields, c); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", f.Name, doc.Line, err)
			}
			out = append(out, Source{Customization: c, File: f, doc: doc})
		}
	}
	return out, nil
}

// Objects returns the objects in files. Those without a namespace get the given one, if it
// is not empty. Errors name file and line.
func Objects(files []lint.File, namespace string) ([]kinds.Object, error) {
	var out []kinds.Object
	for _, f := range files {
		docs, err := documents(f)
		if err != nil {
			return nil, err
		}
		for _, doc := range docs {
			obj := &unstructured.Unstructured{Object: doc.Fields}
			if obj.GetAPIVersion() == "" || obj.GetKind() == "" {
				return nil, fmt.Errorf("%s:%d: is no Kubernetes object: apiVersion or kind is missing", f.Name, doc.Line)
			}
			if namespace != "" && obj.GetNamespace() == "" {
				obj.SetNamespace(namespace)
			}
			out = append(out, obj)
		}
	}
	return out, nil
}

// Items returns the reports of clusters in files: lists of items, single items, or bindings
// that have them. Errors name file and document.
func Items(files []lint.File) ([]workv1alpha2.AggregatedStatusItem, error) {
	out := []workv1alpha2.AggregatedStatusItem{}
	for _, f := range files {
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Content), len(f.Content)+1)
		for n := 1; ; n++ {
			var raw json.RawMessage
			err := decoder.Decode(&raw)
			if errors.Is(err, io.EOF) {
				break
			}
			var items []workv1alpha2.AggregatedStatusItem
			if err == nil {
				items, err = itemsOf(raw)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", f.Name, n, err)
			}
			out = append(out, items...)
		}
	}
	return out, nil
}

// itemsOf reads one document.
func itemsOf(raw json.RawMessage) ([]workv1alpha2.AggregatedStatusItem, error) {
	text := bytes.TrimSpace(raw)
	if len(text) == 0 || bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	if text[0] == '[' {
		var list []workv1alpha2.AggregatedStatusItem
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
			return nil, err
		}
		return list, named(list)
	}
	var binding workv1alpha2.ResourceBinding // both scopes have the same status
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &binding); err == nil && binding.Kind != "" {
		return binding.Status.AggregatedStatus, nil
	}
	var one workv1alpha2.AggregatedStatusItem
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &one); err != nil {
		return nil, err
	}
	return []workv1alpha2.AggregatedStatusItem{one}, named([]workv1alpha2.AggregatedStatusItem{one})
}

// named returns an error if an item has no cluster name.
func named(items []workv1alpha2.AggregatedStatusItem) error {
	for i := range items {
		if items[i].ClusterName == "" {
			return fmt.Errorf("item %d has no clusterName: it is {clusterName, status, applied, appliedMessage, health}", i+1)
		}
	}
	return nil
}

// documents reads the objects of a file.
func documents(f lint.File) ([]build.Document, error) {
	docs, err := build.Read(f.Content, build.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	for _, doc := range docs {
		if doc.Fields == nil {
			return nil, fmt.Errorf("%s:%d: is no Kubernetes object", f.Name, doc.Line)
		}
	}
	return docs, nil
}

func gvkOf(doc build.Document) schema.GroupVersionKind {
	u := unstructured.Unstructured{Object: doc.Fields}
	return u.GroupVersionKind()
}
