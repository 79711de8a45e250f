// Package contents finds what lies within an object of a server: in a Namespace all that is in
// it, under a CustomResourceDefinition all objects of its kind.
//
// In goes how to reach the server and what counts; out come the names of what was found. It lists
// metadata, of kinds that are there to be kept and deleted, and reads no more than it was asked
// for. It writes nothing and keeps nothing.
package contents

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/policies/cascade"
)

// page is how many objects are asked for at once.
const page = 500

// Server is what is asked.
type Server interface {
	Name() string
	// Config and HTTP say how to connect.
	Config() *rest.Config
	HTTP() *http.Client
	Clients() kubernetes.Interface
}

// Search says what is looked for.
type Search struct {
	// Leaves reports whether an object of a kind goes anyway, so that it is not missed.
	Leaves func(schema.GroupKind, metav1.Object) bool
	// Most is how many are looked for: once that many are found, the search ends. It must be
	// more than zero.
	Most int
}

// InNamespace names what would be missed if a namespace were deleted. It asks for every kind
// that the server serves in namespaces. What cannot be looked at is an error: nobody knows
// what is there.
func InNamespace(ctx context.Context, s Server, namespace string, what Search) ([]string, error) {
	served, err := namespacedKinds(s)
	if err != nil {
		return nil, fmt.Errorf("ask what kinds of objects namespace %s may hold: %w", namespace, err)
	}
	l, err := newSearch(s, cascade.Within{Namespaced: served.has}, what)
	if err != nil {
		return nil, err
	}
	for _, kind := range served.listed {
		if err := l.list(ctx, kind, namespace); err != nil || l.done() {
			return l.found, err
		}
	}
	return l.found, nil
}

// OfKind names what would be missed if a CustomResourceDefinition were deleted; nothing if the
// server does not serve the kind.
func OfKind(ctx context.Context, s Server, crd *unstructured.Unstructured, what Search) ([]string, error) {
	return objectsOf(ctx, s, crd, what, (*search).missed)
}

// Blocked names the objects of a kind that remain while its definition is being deleted, each
// with what keeps it.
func Blocked(ctx context.Context, s Server, crd *unstructured.Unstructured, most int) ([]string, error) {
	return objectsOf(ctx, s, crd, Search{Most: most}, (*search).blocked)
}

func objectsOf(ctx context.Context, s Server, crd *unstructured.Unstructured, what Search, name namer) ([]string, error) {
	kind := definedBy(crd)
	if kind == nil {
		return nil, nil
	}
	l, err := newSearch(s, cascade.Within{Kind: true}, what)
	if err != nil {
		return nil, err
	}
	l.name = name
	err = l.list(ctx, *kind, metav1.NamespaceAll)
	return l.found, err
}

// definitionKind is that of definitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Defines reports whether objects of a kind define kinds.
func Defines(kind schema.GroupKind) bool { return kind == definitionKind }

// servedKind is a kind and how its objects are asked for.
type servedKind struct {
	schema.GroupKind
	resource schema.GroupVersionResource
}

// servedKinds are those whose objects live in namespaces.
type servedKinds struct {
	listed []servedKind // that are there to be kept, and deleted
	known  map[schema.GroupKind]bool
}

func (k servedKinds) has(apiVersion, kind string) bool {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && k.known[schema.GroupKind{Group: gv.Group, Kind: kind}]
}

func namespacedKinds(s Server) (servedKinds, error) {
	out := servedKinds{known: map[schema.GroupKind]bool{}}
	kept := discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}
	lists, err := discovery.ServerPreferredNamespacedResources(s.Clients().Discovery())
	if err != nil {
		return out, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return out, err
		}
		for _, r := range list.APIResources {
			kind := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			out.known[kind] = true
			if kept.Match(list.GroupVersion, &r) && !cascade.Transient(kind) {
				out.listed = append(out.listed, servedKind{kind, gv.WithResource(r.Name)})
			}
		}
	}
	return out, nil
}

func definedBy(crd *unstructured.Unstructured) *servedKind {
	definition := crd.UnstructuredContent()
	spec, _ := definition["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	plural, _ := names["plural"].(string)
	kind, _ := names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served && name != "" {
			return &servedKind{schema.GroupKind{Group: group, Kind: kind}, schema.GroupVersionResource{Group: group, Version: name, Resource: plural}}
		}
	}
	return nil
}

// namer returns what a person calls an object that is looked for; empty for others.
type namer func(l *search, kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string

// search lists objects until enough of them are found.
type search struct {
	objects metadata.Interface
	within  cascade.Within
	name    namer
	what    Search
	found   []string
}

func newSearch(s Server, within cascade.Within, what Search) (*search, error) {
	objects, err := metadata.NewForConfigAndClient(s.Config(), s.HTTP())
	if err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", s.Name(), err)
	}
	return &search{objects: objects, within: within, name: (*search).missed, what: what}, nil
}

// missed names an object that would be missed.
func (l *search) missed(kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string {
	within := l.within
	within.Leaves = func(obj metav1.Object) bool { return l.what.Leaves(kind, obj) }
	if !cascade.Counts(kind, obj, within) {
		return ""
	}
	return cascade.Title(kind.Kind, obj, within)
}

// blocked names any object, with what keeps it.
func (l *search) blocked(kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string {
	title := cascade.Title(kind.Kind, obj, l.within)
	if by := cascade.BlockedBy(obj.Finalizers); by != "" {
		title += " (" + by + ")"
	}
	return title
}

func (l *search) done() bool { return len(l.found) >= l.what.Most }

func (l *search) list(ctx context.Context, kind servedKind, namespace string) error {
	options := metav1.ListOptions{Limit: page}
	for {
		objects, err := l.objects.Resource(kind.resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil // it was served a moment ago
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.resource.GroupResource(), err)
		}
		for i := range objects.Items {
			if name := l.name(l, kind.GroupKind, &objects.Items[i]); name != "" {
				l.found = append(l.found, name)
			}
			if l.done() {
				return nil
			}
		}
		if options.Continue = objects.Continue; options.Continue == "" {
			return nil
		}
	}
}
