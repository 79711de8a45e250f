package access

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// AppliesAsAuthor reports whether Works are applied in a cluster as who applied their
// templates.
func AppliesAsAuthor(cluster *clusterv1alpha1.Cluster) bool {
	return cluster != nil && cluster.Annotations[clusterv1alpha1.ApplyAsAnnotation] == clusterv1alpha1.ApplyAsAuthor
}

// RightsLabel is on Works that bring the hub's rights to a member. Its value is the
// namespace that they hold in; empty for those of the whole cluster.
const RightsLabel = "unifiedauth.flotilla.io/rights-in"

// RightsAnnotation says of such a Work which role or binding of the hub's it copies.
const RightsAnnotation = "unifiedauth.flotilla.io/rights-of"

// Source is what rights are copied from: all Roles and RoleBindings of a namespace, or
// one ClusterRole or ClusterRoleBinding. It is the name of the namespace, or the kind
// and the name of the other, with a slash between them.
type Source string

// In is the Source that is a namespace.
func In(namespace string) Source { return Source(namespace) }

// OfClusterRole is the Source that is a ClusterRole.
func OfClusterRole(name string) Source { return Source(ClusterRoleKind + "/" + name) }

// OfClusterBinding is the Source that is a ClusterRoleBinding.
func OfClusterBinding(name string) Source { return Source(clusterBindingKind + "/" + name) }

// Split returns the namespace of a Source, or the kind and the name of what it is.
func (s Source) Split() (namespace, kind, name string) {
	kind, name, whole := strings.Cut(string(s), "/")
	if !whole {
		return kind, "", ""
	}
	return "", kind, name
}

// Copied reads from a Work what it copies; false if it brings no rights.
func Copied(work metav1.Object) (Source, bool) {
	namespace, is := work.GetLabels()[RightsLabel]
	if namespace == "" {
		return Source(work.GetAnnotations()[RightsAnnotation]), is
	}
	return In(namespace), is
}

// InNamespace returns the roles and bindings by which authors may do in a member what
// they may in a namespace of the hub: the hub's own, with the names that members know
// authors by. Sorted; none where nobody is given anything.
func InNamespace(namespace string, roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding) []Right {
	var out []Right
	needed := set{}
	for _, b := range bindings {
		subjects := translated(b.Subjects)
		if len(subjects) == 0 || b.Namespace != namespace || !b.DeletionTimestamp.IsZero() {
			continue
		}
		if b.RoleRef.Kind != ClusterRoleKind {
			needed.add(b.RoleRef.Name)
		}
		out = append(out, Right{In(namespace), &rbacv1.RoleBinding{
			TypeMeta:   typeOf("RoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bindingName(b.Name, b.RoleRef)},
			RoleRef:    ours(b.RoleRef), Subjects: subjects,
		}})
	}
	for _, role := range roles {
		if _, ok := needed[role.Name]; ok && role.Namespace == namespace {
			out = append(out, Right{In(namespace), &rbacv1.Role{
				TypeMeta:   typeOf("Role"),
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: author.Prefix + role.Name},
				Rules:      applying(role.Rules),
			}})
		}
	}
	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(strings.Compare(a.kind(), b.kind()), strings.Compare(a.object.GetName(), b.object.GetName()))
	})
	return out
}

// ByClusterBinding returns what a ClusterRoleBinding gives; false for nothing, and for
// those that every API server has.
func ByClusterBinding(b *rbacv1.ClusterRoleBinding) (Right, bool) {
	subjects := translated(b.Subjects)
	return Right{OfClusterBinding(b.Name), &rbacv1.ClusterRoleBinding{
		TypeMeta:   typeOf(clusterBindingKind),
		ObjectMeta: metav1.ObjectMeta{Name: bindingName(b.Name, b.RoleRef)},
		RoleRef:    ours(b.RoleRef), Subjects: subjects,
	}}, len(subjects) > 0 && !strings.HasPrefix(b.Name, systemPrefix) && b.DeletionTimestamp.IsZero()
}

// ByClusterRole returns the copy of a ClusterRole that somebody is bound to.
func ByClusterRole(role *rbacv1.ClusterRole) Right {
	return Right{OfClusterRole(role.Name), &rbacv1.ClusterRole{
		TypeMeta:   typeOf(ClusterRoleKind),
		ObjectMeta: metav1.ObjectMeta{Name: author.Prefix + role.Name},
		Rules:      applying(role.Rules),
	}}
}

// Binds reports whether a RoleBinding gives the rights of a ClusterRole to anybody who may
// apply templates.
func Binds(b *rbacv1.RoleBinding) bool {
	return b.RoleRef.Kind == ClusterRoleKind && b.DeletionTimestamp.IsZero() && len(translated(b.Subjects)) > 0
}

// Right is one object that a member is to have. Each has a Work of its own: a change of
// one rewrites no other, and no Work grows with what else there is.
type Right struct {
	source Source
	object interface {
		runtime.Object
		metav1.Object
	}
}

func (r Right) kind() string { return r.object.GetObjectKind().GroupVersionKind().Kind }

// workName is the name of its Works. Names of roles and bindings may differ in what other
// names may not: had two of them one Work, they would write it in turns.
func (r Right) workName() string {
	const enough = 16 // bytes
	sum := sha256.Sum256([]byte(r.kind() + "/" + r.object.GetNamespace() + "/" + r.object.GetName()))
	return "rights-" + hex.EncodeToString(sum[:enough])
}

// Work returns the Work that brings a right to a cluster.
func (r Right) Work(cluster *clusterv1alpha1.Cluster) (*workv1alpha1.Work, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.object)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.kind(), r.object.GetName(), err)
	}
	work, err := plan.SystemOf(r.workName(), cluster, &unstructured.Unstructured{Object: content})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster.Name, err)
	}
	metav1.SetMetaDataLabel(&work.ObjectMeta, RightsLabel, r.object.GetNamespace())
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, RightsAnnotation, string(r.source))
	return work, nil
}

// applying are the rules of a role in members, where all is written by applying it, by
// patch: who may update an object may change what a patch may.
func applying(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	out := slices.Clone(rules)
	for i, rule := range rules {
		if slices.Contains(rule.Verbs, "update") && !slices.Contains(rule.Verbs, "patch") {
			out[i].Verbs = append(slices.Clone(rule.Verbs), "patch")
		}
	}
	return out
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// ours is the reference to the copy of a role.
func ours(ref rbacv1.RoleRef) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: ref.Kind, Name: author.Prefix + ref.Name}
}

// bindingName is the name of the copy of a binding. What a binding is to cannot be
// changed, so that one to another role is another one.
func bindingName(name string, ref rbacv1.RoleRef) string {
	const few = 4 // bytes
	sum := sha256.Sum256([]byte(ref.Kind + "/" + ref.Name))
	return author.Prefix + name + ":" + hex.EncodeToString(sum[:few])
}

// translated are those of the subjects that may apply templates, as members know
// them.
func translated(subjects []rbacv1.Subject) []rbacv1.Subject {
	var out []rbacv1.Subject
	add := func(kind, name string, ok bool) {
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
		if ok && !slices.Contains(out, subject) {
			out = append(out, subject)
		}
	}
	for _, subject := range subjects {
		switch subject.Kind {
		case rbacv1.UserKind:
			name, ok := author.UserInMembers(subject.Name)
			add(rbacv1.UserKind, name, ok)
		case rbacv1.GroupKind:
			name, ok := author.GroupInMembers(subject.Name)
			add(rbacv1.GroupKind, name, ok)
		case rbacv1.ServiceAccountKind:
			own := author.Own("system:serviceaccount:" + subject.Namespace + ":" + subject.Name) // applies nothing as itself
			ok := !own && subject.Namespace != "" && subject.Name != ""
			add(rbacv1.UserKind, author.ServiceAccountInMembers(subject.Namespace, subject.Name), ok)
		}
	}
	return out
}
