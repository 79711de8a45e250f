package acting

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/author"
)

// Lack is a right that somebody lacks in a member. It can be compared.
type Lack struct {
	group     string // of APIs
	namespace string // empty for what has none
	who       string // the user and the groups, a line each
}

func lackOf(who author.Account, group, namespace string) Lack {
	return Lack{group: group, namespace: namespace, who: strings.Join(append([]string{who.User}, who.Groups...), "\n")}
}

// BoundIn reports whether subjects that are bound in a namespace, or with none everywhere,
// are who lacks the right, and where.
func (l Lack) BoundIn(namespace string, subjects []rbacv1.Subject) bool {
	if namespace != "" && namespace != l.namespace {
		return false
	}
	names := strings.Split(l.who, "\n") // no name has a line break: it would not be a header
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		at := slices.Index(names, s.Name)
		return at == 0 && s.Kind == rbacv1.UserKind || at > 0 && s.Kind == rbacv1.GroupKind
	})
}

// GivenIn reports whether rules of a Role of a namespace, or with none of a ClusterRole,
// may be what is lacking, to whomever they are bound.
func (l Lack) GivenIn(namespace string, rules []rbacv1.PolicyRule) bool {
	if namespace != "" && namespace != l.namespace {
		return false
	}
	return l.group == rbacv1.GroupName || // who gives rights must have them, of all groups
		slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, l.group) || slices.Contains(r.APIGroups, rbacv1.APIGroupAll)
		})
}

// MayName returns an error if somebody has written in a Work by whose manifest a Role or
// binding would have a name of the control plane's own in a member. Admission sees
// templates, but neither manifests of Works nor what overrides make of templates.
func MayName(work *workv1alpha1.Work, desired *unstructured.Unstructured) error {
	by := work.Annotations[workv1alpha2.AppliedByAnnotation]
	if by == "" || !access.Gives(desired.GroupVersionKind().GroupKind()) {
		return nil
	}
	grant, err := access.GrantOf(desired)
	if err != nil {
		return err
	}
	if field, name := grant.OwnName(); field != "" {
		return fmt.Errorf("%s %s is not applied: in %s, %q begins with flotilla:, as the names by which members know users of the control plane and their rights: take another name",
			desired.GetKind(), strings.TrimPrefix(desired.GetNamespace()+"/"+desired.GetName(), "/"), field, name)
	}
	return nil
}
