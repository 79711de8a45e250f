package impersonation

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

// BoundIn reports whether a binding in a namespace, or in all if it is empty, binds a role to who lacks
// the right, where it is lacking.
func (l Lack) BoundIn(namespace string, subjects []rbacv1.Subject) bool {
	if namespace != "" && namespace != l.namespace {
		return false
	}
	names := strings.Split(l.who, "\n") // no name has a line break, as names are sent in HTTP headers
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		at := slices.Index(names, s.Name)
		return at == 0 && s.Kind == rbacv1.UserKind || at > 0 && s.Kind == rbacv1.GroupKind
	})
}

// GivenIn reports whether the rules of a Role in a namespace, or of a ClusterRole if it is empty,
// may grant the missing right, to whomever they are bound.
func (l Lack) GivenIn(namespace string, rules []rbacv1.PolicyRule) bool {
	if namespace != "" && namespace != l.namespace {
		return false
	}
	return l.group == rbacv1.GroupName || // who grants rights must have them, and they may be of any group
		slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, l.group) || slices.Contains(r.APIGroups, rbacv1.APIGroupAll)
		})
}

// MayName returns an error if a Role or binding in a Work with authors would have a name in the member that is reserved
// for the control plane. Admission cannot refuse all of these, as it checks templates, but neither manifests of Works
// nor the results of overrides.
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
