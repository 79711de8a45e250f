package agents

import (
	"context"
	"fmt"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/agentrights"
)

// role returns an agent's cluster-wide rules.
func role(cluster string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: identity.Role(cluster), Labels: labels(cluster)},
		Rules:      agentrights.Everywhere(cluster),
	}
}

// local is an agent's rules in one namespace.
type local struct {
	namespace, name string
	rules           []rbacv1.PolicyRule
	finalizers      []string
}

// roles returns an agent's rules in single namespaces.
func roles(cluster string) []local {
	return []local{
		{namespace: workv1alpha2.NamespaceKarmadaCluster, name: identity.SecretRole(cluster), rules: agentrights.Credentials(cluster)},
		{namespace: metav1.NamespaceDefault, name: identity.EventRole(cluster), rules: agentrights.Events()},
	}
}

// worksFinalizer keeps an agent's rights in a namespace that is being deleted until no
// Work is left there.
const worksFinalizer = "registration.flotilla.io/works"

// workRole returns an agent's rules for the Works of its cluster.
func workRole(cluster string) local {
	return local{
		namespace: workv1alpha2.ExecutionNamespace(cluster), name: identity.WorkRole(cluster),
		finalizers: []string{worksFinalizer}, rules: agentrights.Works(),
	}
}

// clusterLabel is on all that is made for the agent of a cluster.
const clusterLabel = identity.ClusterLabel

func labels(cluster string) map[string]string {
	return map[string]string{workv1alpha2.KarmadaSystemLabel: workv1alpha2.KarmadaSystemLabelValue, clusterLabel: cluster}
}

// objects are the roles and bindings that belong to an agent's ClusterRole.
func objects(cluster string, of *rbacv1.ClusterRole, locals []local) []client.Object {
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(of, rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identity.Agent(cluster)}}
	out := []client.Object{&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Labels: labels(cluster), OwnerReferences: owner},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: of.Name},
		Subjects:   subjects,
	}}
	for _, l := range locals {
		meta := metav1.ObjectMeta{Namespace: l.namespace, Name: l.name, Labels: labels(cluster), OwnerReferences: owner, Finalizers: l.finalizers}
		out = append(out,
			&rbacv1.Role{ObjectMeta: meta, Rules: l.rules},
			&rbacv1.RoleBinding{
				ObjectMeta: *meta.DeepCopy(),
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: l.name},
				Subjects:   subjects,
			})
	}
	return out
}

// grantor writes RBAC objects.
type grantor struct {
	hub  client.Writer
	live client.Reader
}

// roleOf returns the ClusterRole of a cluster's agent; nil if there is none.
func (g grantor) roleOf(ctx context.Context, cluster string) (*rbacv1.ClusterRole, error) {
	current := &rbacv1.ClusterRole{}
	err := g.live.Get(ctx, client.ObjectKey{Name: identity.Role(cluster)}, current)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the role of the agent of %s: %w", cluster, err)
	}
	return current, nil
}

// put writes a ClusterRole with these annotations and owners in the place of the
// current one, which may be nil, and returns what there is then.
func (g grantor) put(ctx context.Context, current *rbacv1.ClusterRole, cluster string, annotations map[string]string, owners []metav1.OwnerReference) (*rbacv1.ClusterRole, error) {
	desired := role(cluster)
	desired.Annotations, desired.OwnerReferences = annotations, owners
	if current == nil {
		if err := g.hub.Create(ctx, desired); err != nil {
			return nil, fmt.Errorf("make the role of the agent of %s: %w", cluster, err)
		}
		return desired, nil
	}
	next := current.DeepCopy()
	next.Rules, next.OwnerReferences = desired.Rules, owners
	next.Labels, next.Annotations = over(next.Labels, desired.Labels), over(next.Annotations, annotations)
	if equality.Semantic.DeepEqual(current, next) {
		return current, nil
	}
	if err := g.hub.Update(ctx, next); err != nil { // optimistic locking: what was read must not have changed
		return nil, fmt.Errorf("write the role of the agent of %s: %w", cluster, err)
	}
	return next, nil
}

// give creates or updates the objects that belong to a ClusterRole.
func (g grantor) give(ctx context.Context, cluster string, of *rbacv1.ClusterRole, locals []local) error {
	for _, desired := range objects(cluster, of, locals) {
		if err := g.ensure(ctx, desired); err != nil {
			return fmt.Errorf("give the agent of %s its rights: %w", cluster, err)
		}
	}
	return nil
}

func (g grantor) ensure(ctx context.Context, desired client.Object) error {
	var next, current client.Object
	var same bool // the roleRef of a binding is immutable
	var err error
	key := client.ObjectKeyFromObject(desired)
	switch d := desired.(type) {
	case *rbacv1.Role:
		c := &rbacv1.Role{}
		err = g.live.Get(ctx, key, c)
		n := c.DeepCopy()
		n.Rules, same = d.Rules, true
		current, next = c, n
	case *rbacv1.RoleBinding:
		c := &rbacv1.RoleBinding{}
		err = g.live.Get(ctx, key, c)
		n := c.DeepCopy()
		n.Subjects, same = d.Subjects, c.RoleRef == d.RoleRef
		current, next = c, n
	case *rbacv1.ClusterRoleBinding:
		c := &rbacv1.ClusterRoleBinding{}
		err = g.live.Get(ctx, key, c)
		n := c.DeepCopy()
		n.Subjects, same = d.Subjects, c.RoleRef == d.RoleRef
		current, next = c, n
	}
	switch {
	case apierrors.IsNotFound(err):
		return g.hub.Create(ctx, desired)
	case err != nil:
		return err
	case !same: // the server refuses another roleRef
		if err := g.hub.Delete(ctx, current); client.IgnoreNotFound(err) != nil {
			return err
		}
		return g.hub.Create(ctx, desired)
	}
	next.SetLabels(over(current.GetLabels(), desired.GetLabels()))
	next.SetOwnerReferences(desired.GetOwnerReferences())
	if current.GetDeletionTimestamp().IsZero() { // the server refuses new finalizers on what is being deleted
		next.SetFinalizers(desired.GetFinalizers())
	}
	if equality.Semantic.DeepEqual(current, next) {
		return nil
	}
	return g.hub.Update(ctx, next)
}

// release removes the finalizer of the rights in the namespace of a cluster's Works.
func (g grantor) release(ctx context.Context, cluster string) error {
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: identity.WorkRole(cluster)}
	for _, obj := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}} {
		err := g.live.Get(ctx, key, obj)
		if err == nil && len(obj.GetFinalizers()) > 0 {
			obj.SetFinalizers(nil)
			err = g.hub.Update(ctx, obj)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let go of the rights of the agent of %s: %w", cluster, err)
		}
	}
	return nil
}

func over(base, top map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, top)
	return out
}
