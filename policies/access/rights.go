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
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// AppliesAsAuthor says whether Works are applied in a cluster as who applied their
// templates.
func AppliesAsAuthor(cluster *clusterv1alpha1.Cluster) bool {
	return cluster != nil && cluster.Annotations[clusterv1alpha1.ApplyAsAnnotation] == clusterv1alpha1.ApplyAsAuthor
}

// RightsLabel is on Works that bring the hub's rights to a member. Its value is the
// namespace that they hold in; empty for those of the whole cluster.
const RightsLabel = "unifiedauth.flotilla.io/rights-in"

// Hub is what the hub's roles and bindings say: in one namespace, or, with none, in
// all at once.
type Hub struct {
	// Namespace that Roles are of; empty for the whole cluster.
	Namespace string
	// Roles of the namespace.
	Roles []*rbacv1.Role
	// Bindings of the namespace, or of all for the whole cluster.
	Bindings []*rbacv1.RoleBinding
	// ClusterRoles and ClusterBindings are for the whole cluster alone.
	ClusterRoles    []*rbacv1.ClusterRole
	ClusterBindings []*rbacv1.ClusterRoleBinding
}

// Rights are the roles and bindings by which authors may do in a member what they may
// on the hub: the hub's own, with the names that members know authors by. Sorted;
// empty where nobody is given anything.
func (h Hub) Rights() ([]*unstructured.Unstructured, error) {
	objs := h.ofNamespace()
	if h.Namespace == "" {
		objs = h.ofCluster()
	}
	slices.SortFunc(objs, func(a, b object) int {
		return cmp.Or(strings.Compare(kindOf(a), kindOf(b)), strings.Compare(a.GetName(), b.GetName()))
	})
	out := make([]*unstructured.Unstructured, len(objs))
	for i, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kindOf(obj), obj.GetName(), err)
		}
		out[i] = &unstructured.Unstructured{Object: content}
	}
	return out, nil
}

type object interface {
	runtime.Object
	metav1.Object
}

func kindOf(obj object) string { return obj.GetObjectKind().GroupVersionKind().Kind }

func (h *Hub) ofNamespace() []object {
	var out []object
	needed := set{}
	for _, b := range h.Bindings {
		subjects := translated(b.Subjects)
		if len(subjects) == 0 || b.Namespace != h.Namespace || !b.DeletionTimestamp.IsZero() {
			continue
		}
		if b.RoleRef.Kind != ClusterRoleKind {
			needed.add(b.RoleRef.Name)
		}
		out = append(out, &rbacv1.RoleBinding{
			TypeMeta:   typeOf("RoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: bindingName(b.Name, b.RoleRef)},
			RoleRef:    ours(b.RoleRef), Subjects: subjects,
		})
	}
	for _, role := range h.Roles {
		if _, ok := needed[role.Name]; ok && role.Namespace == h.Namespace {
			out = append(out, &rbacv1.Role{
				TypeMeta:   typeOf("Role"),
				ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: author.Prefix + role.Name},
				Rules:      applying(role.Rules),
			})
		}
	}
	return out
}

func (h *Hub) ofCluster() []object {
	var out []object
	needed := set{}
	for _, b := range h.Bindings {
		if b.RoleRef.Kind == ClusterRoleKind && len(translated(b.Subjects)) > 0 {
			needed.add(b.RoleRef.Name)
		}
	}
	for _, b := range h.ClusterBindings {
		subjects := translated(b.Subjects)
		if len(subjects) == 0 || strings.HasPrefix(b.Name, systemPrefix) || !b.DeletionTimestamp.IsZero() {
			continue // what every API server gives everybody
		}
		needed.add(b.RoleRef.Name)
		out = append(out, &rbacv1.ClusterRoleBinding{
			TypeMeta:   typeOf("ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: bindingName(b.Name, b.RoleRef)},
			RoleRef:    ours(b.RoleRef), Subjects: subjects,
		})
	}
	for _, role := range h.ClusterRoles {
		if _, ok := needed[role.Name]; ok {
			out = append(out, &rbacv1.ClusterRole{
				TypeMeta:   typeOf(ClusterRoleKind),
				ObjectMeta: metav1.ObjectMeta{Name: author.Prefix + role.Name},
				Rules:      applying(role.Rules),
			})
		}
	}
	return out
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
			own := subject.Namespace == metav1.NamespaceSystem || subject.Namespace == workv1alpha2.NamespaceKarmadaSystem
			ok := !own && subject.Namespace != "" && subject.Name != "" // the control plane's own apply nothing as themselves
			add(rbacv1.UserKind, author.ServiceAccountInMembers(subject.Namespace, subject.Name), ok)
		}
	}
	return out
}

// RightsWorkName is the name of the Work that brings the rights in a namespace, or
// with none in the whole cluster.
func RightsWorkName(namespace string) string {
	return workv1alpha2.WorkName("Rights", "rights", namespace)
}

// RightsWork returns the Work that brings rights to a cluster; nil if there are none,
// or the cluster does not go by them.
func RightsWork(cluster *clusterv1alpha1.Cluster, namespace string, rights []*unstructured.Unstructured) (*workv1alpha1.Work, error) {
	if len(rights) == 0 || !AppliesAsAuthor(cluster) {
		return nil, nil
	}
	work, err := plan.SystemOf(RightsWorkName(namespace), cluster, rights...)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", cluster.Name, err)
	}
	metav1.SetMetaDataLabel(&work.ObjectMeta, RightsLabel, namespace)
	return work, nil
}
