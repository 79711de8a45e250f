package guard

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/cascade"
)

// contentsPage is how many objects are asked for at once.
const contentsPage = 500

// Member is what is asked of a member cluster.
type Member interface {
	Name() string
	// Config and HTTP say how to connect.
	Config() *rest.Config
	HTTP() *http.Client
	Clients() kubernetes.Interface
	Get(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

var _ Member = (*members.Member)(nil)

// contents names what would be missed if a Namespace, or a CustomResourceDefinition,
// were deleted: at most one more than cascade.Most. leaves says what goes anyway. It
// asks the member for every kind that it serves in namespaces, or for all objects of
// the kind; nothing of other kinds is asked for, and nothing keeps contents. What
// cannot be looked at is an error: nobody knows what is there.
func contents(ctx context.Context, m Member, gvk schema.GroupVersionKind, key types.NamespacedName, leaves func(metav1.Object) bool) ([]string, error) {
	objects, err := metadata.NewForConfigAndClient(m.Config(), m.HTTP())
	if err != nil {
		return nil, fmt.Errorf("set up the connection to %s: %w", m.Name(), err)
	}
	l := &look{objects: objects, within: cascade.Within{Leaves: leaves}}
	l.name = l.missed
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"}:
		served, err := namespacedKinds(m)
		if err != nil {
			return nil, fmt.Errorf("ask what kinds of objects namespace %s may hold: %w", key.Name, err)
		}
		l.within.Namespaced = served.has
		for _, kind := range served.listed {
			if err := l.list(ctx, kind, key.Name); err != nil || l.done() {
				return l.found, err
			}
		}
	case definitionKind:
		l.within.Kind = true
		kind, err := defined(ctx, m, gvk, key)
		if err != nil || kind == nil {
			return nil, err
		}
		if err := l.list(ctx, *kind, metav1.NamespaceAll); err != nil {
			return nil, err
		}
	}
	return l.found, nil
}

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

func namespacedKinds(m Member) (servedKinds, error) {
	out := servedKinds{known: map[schema.GroupKind]bool{}}
	kept := discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}
	lists, err := discovery.ServerPreferredNamespacedResources(m.Clients().Discovery())
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

// defined returns the kind that a CustomResourceDefinition defines; nil if the member
// does not serve it.
func defined(ctx context.Context, m Member, gvk schema.GroupVersionKind, key types.NamespacedName) (*servedKind, error) {
	crd, err := m.Get(ctx, gvk, key)
	if err != nil {
		return nil, err
	}
	return definedBy(crd), nil
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

// Left names the objects of a kind that are there while its definition is being deleted in a
// member, each with what keeps it: at most one more than cascade.Most. It returns none for
// what is no definition, and where that cannot be looked at.
func Left(ctx context.Context, edge any, crd *unstructured.Unstructured) []string {
	m, ok := edge.(Member)
	if !ok || !Defines(crd.GroupVersionKind().GroupKind()) {
		return nil
	}
	kind := definedBy(crd)
	objects, err := metadata.NewForConfigAndClient(m.Config(), m.HTTP())
	if err != nil || kind == nil {
		return nil
	}
	l := &look{objects: objects, within: cascade.Within{Kind: true}}
	l.name = l.held
	if err := l.list(ctx, *kind, metav1.NamespaceAll); err != nil {
		return nil
	}
	return l.found
}

// definitionKind is that of definitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Defines reports whether objects of a kind define kinds.
func Defines(kind schema.GroupKind) bool { return kind == definitionKind }

// look goes through objects until enough of them are found.
type look struct {
	objects metadata.Interface
	within  cascade.Within
	// name returns what a person calls an object that is looked for; empty for others.
	name  func(kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string
	found []string
}

// missed names an object that would be missed.
func (l *look) missed(kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string {
	if !cascade.Counts(kind, obj, l.within) {
		return ""
	}
	return cascade.Title(kind.Kind, obj, l.within)
}

// held names any object, with what keeps it.
func (l *look) held(kind schema.GroupKind, obj *metav1.PartialObjectMetadata) string {
	title := cascade.Title(kind.Kind, obj, l.within)
	if held := cascade.Held(obj.Finalizers); held != "" {
		title += " (" + held + ")"
	}
	return title
}

func (l *look) done() bool { return len(l.found) > cascade.Most }

func (l *look) list(ctx context.Context, kind servedKind, namespace string) error {
	options := metav1.ListOptions{Limit: contentsPage}
	for {
		page, err := l.objects.Resource(kind.resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil // it was served a moment ago
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", kind.resource.GroupResource(), err)
		}
		for i := range page.Items {
			if name := l.name(kind.GroupKind, &page.Items[i]); name != "" {
				l.found = append(l.found, name)
			}
			if l.done() {
				return nil
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
