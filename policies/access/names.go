package access

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/author"
)

// Grant is what matters of a Role, a RoleBinding, or one of the whole cluster: what it
// is called, whom it gives rights, and which.
type Grant struct {
	Metadata metav1.ObjectMeta   `json:"metadata"`
	Subjects []rbacv1.Subject    `json:"subjects,omitempty"`
	Rules    []rbacv1.PolicyRule `json:"rules,omitempty"`
}

// Gives reports whether objects of a kind give rights.
func Gives(kind schema.GroupKind) bool {
	return kind.Group == rbacv1.GroupName && slices.Contains([]string{"Role", "RoleBinding", ClusterRoleKind, "ClusterRoleBinding"}, kind.Kind)
}

// GrantOf reads an object that gives rights.
func GrantOf(obj *unstructured.Unstructured) (Grant, error) {
	var out Grant
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &out); err != nil {
		return out, fmt.Errorf("%s %s cannot be read: %w", obj.GetKind(), obj.GetName(), err)
	}
	return out, nil
}

// OwnName returns the field and the name in it that is the control plane's own: one
// that it gives its users, and what it grants them, in members. Empty for none.
func (g *Grant) OwnName() (field, name string) {
	if own(g.Metadata.Name) {
		return "metadata.name", g.Metadata.Name
	}
	if own(g.Metadata.GenerateName) {
		return "metadata.generateName", g.Metadata.GenerateName
	}
	for i, subject := range g.Subjects {
		if own(subject.Name) {
			return fmt.Sprintf("subjects[%d].name", i), subject.Name
		}
	}
	for i, rule := range g.Rules {
		if !slices.Contains(rule.Verbs, impersonate) && !slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			continue
		}
		for j, name := range rule.ResourceNames {
			if own(name) {
				return fmt.Sprintf("rules[%d].resourceNames[%d]", i, j), name
			}
		}
	}
	return "", ""
}

func own(name string) bool { return strings.HasPrefix(name, author.Prefix) }
