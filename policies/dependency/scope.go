package dependency

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// NamespacesAnnotation on a ClusterPropagationPolicy lists the namespaces, separated
// by commas, in which templates that it carries may refer to objects;
// EveryNamespace is every one. A template may always refer to objects of its own.
const NamespacesAnnotation = "propagation.flotilla.io/dependency-namespaces"

// EveryNamespace stands for all of them. There are no other patterns.
const EveryNamespace = "*"

// ReferenceScope is what the references of one template may reach. A template of no namespace
// is an administrator's, and reaches everywhere.
type ReferenceScope struct {
	// Template that refers.
	Template selector.Resource
	// Administered: a ClusterPropagationPolicy carries the template. It may then refer
	// to what belongs to no namespace.
	Administered bool
	// Namespaces are those that this policy opens.
	Namespaces []string
	// Grants are those of other namespaces.
	Grants []Grant
	// Kept are references that stay permitted although nothing permits them any more;
	// see Release.
	Kept []kinds.Dependency
}

// Grant is a ReferenceGrant: objects From refer to objects To of its namespace.
type Grant struct {
	Namespace string
	From      []GrantFrom
	To        []GrantTo
}

// GrantFrom is who may refer.
type GrantFrom struct{ Group, Kind, Namespace string }

// GrantTo is what may be referred to; without a name, all of the kind.
type GrantTo struct{ Group, Kind, Name string }

// GrantKinds are the kinds that grants are read from, in each version of which the
// control plane may have any.
func GrantKinds() []schema.GroupVersionKind {
	group := schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "ReferenceGrant"}
	return []schema.GroupVersionKind{group.WithVersion("v1"), group.WithVersion("v1beta1")}
}

// GrantOf reads a ReferenceGrant. What is not as it should be grants nothing.
func GrantOf(obj *unstructured.Unstructured) Grant {
	g := Grant{Namespace: obj.GetNamespace()}
	for _, m := range objectsAt(obj, "spec", "from") {
		g.From = append(g.From, GrantFrom{Group: text(m, "group"), Kind: text(m, "kind"), Namespace: text(m, "namespace")})
	}
	for _, m := range objectsAt(obj, "spec", "to") {
		g.To = append(g.To, GrantTo{Group: text(m, "group"), Kind: text(m, "kind"), Name: text(m, "name")})
	}
	return g
}

func objectsAt(obj *unstructured.Unstructured, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedSlice(obj.Object, path...)
	out := make([]map[string]any, 0, len(list))
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func text(m map[string]any, key string) string {
	value, _ := m[key].(string)
	return value
}

// Open adds the namespaces that a policy which carries the template opens to its references.
// One that does not select the template opens nothing, whatever the template's
// binding claims.
func (b *ReferenceScope) Open(p policyv1alpha1.Policy) {
	if p.GetNamespace() != "" || !propagation.Selects(p, b.Template) {
		return
	}
	b.Administered = true
	b.Namespaces = append(b.Namespaces, Namespaces(p)...)
}

// Namespaces are those that NamespacesAnnotation of a policy lists, in its order.
func Namespaces(p policyv1alpha1.Policy) []string {
	var out []string
	for name := range strings.SplitSeq(p.GetAnnotations()[NamespacesAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}

// Release keeps the cluster-scoped dependencies of a template that no policy carries any
// more: clusters would lose what others there depend on.
func (b *ReferenceScope) Release(before []kinds.Dependency) {
	for _, d := range before {
		if d.Namespace == "" {
			b.Kept = append(b.Kept, d)
		}
	}
}

// Foreign reports whether any of the dependencies lies outside of the namespace of
// the template that refers to it.
func Foreign(namespace string, all []kinds.Dependency) bool {
	return namespace != "" && slices.ContainsFunc(all, func(d kinds.Dependency) bool { return d.Namespace != namespace })
}

// Divide returns the dependencies that the template may refer to, and those that it
// may not, in their order.
func (b *ReferenceScope) Divide(all []kinds.Dependency) (permitted, refused []kinds.Dependency) {
	permitted = make([]kinds.Dependency, 0, len(all))
	for _, d := range all {
		if b.permits(d) {
			permitted = append(permitted, d)
		} else {
			refused = append(refused, d)
		}
	}
	return permitted, refused
}

func (b *ReferenceScope) permits(d kinds.Dependency) bool {
	own := b.Template.Namespace
	switch {
	case own == "" || d.Namespace == own:
		return true
	case d.Namespace == "":
		return b.Administered || slices.ContainsFunc(b.Kept, func(k kinds.Dependency) bool { return compare(k, d) == 0 })
	case b.Administered && (slices.Contains(b.Namespaces, d.Namespace) || slices.Contains(b.Namespaces, EveryNamespace)):
		return true
	}
	return slices.ContainsFunc(b.Grants, func(g Grant) bool { return g.permits(b.Template, d) })
}

func (g *Grant) permits(from selector.Resource, d kinds.Dependency) bool {
	if g.Namespace != d.Namespace {
		return false
	}
	who := schema.FromAPIVersionAndKind(from.APIVersion, from.Kind)
	what := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind)
	return slices.Contains(g.From, GrantFrom{Group: who.Group, Kind: who.Kind, Namespace: from.Namespace}) &&
		slices.ContainsFunc(g.To, func(to GrantTo) bool {
			return to.Group == what.Group && to.Kind == what.Kind && (to.Name == "" || to.Name == d.Name)
		})
}

// Refused explains, for people, what a template may not refer to and what they can do
// about it; nil for nothing.
func Refused(template selector.Resource, refused []kinds.Dependency) error {
	if len(refused) == 0 {
		return nil
	}
	reported := make([]string, 0, maxFaults+1)
	for _, d := range refused[:min(len(refused), maxFaults)] {
		reported = append(reported, refusal(template, d))
	}
	if more := len(refused) - maxFaults; more > 0 {
		reported = append(reported, fmt.Sprintf("and %d others", more))
	}
	return fmt.Errorf("%s", strings.Join(reported, "; "))
}

func refusal(template selector.Resource, d kinds.Dependency) string {
	name := d.Name
	if name == "" {
		name = "with labels " + metav1.FormatLabelSelector(d.LabelSelector)
	}
	if d.Namespace == "" {
		return fmt.Sprintf("%s %s does not go along: it belongs to no namespace, and no ClusterPropagationPolicy carries the %s. "+
			"A ClusterPropagationPolicy can carry either of them", d.Kind, name, template.Kind)
	}
	return fmt.Sprintf("%s %s/%s does not go along: it is in another namespace than the %s. "+
		"Either a ReferenceGrant in %s allows from %s of %s to %s %s, or a policy of its own carries it",
		d.Kind, d.Namespace, name, template.Kind, d.Namespace, template.Kind, template.Namespace, d.Kind, name)
}
