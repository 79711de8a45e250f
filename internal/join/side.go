package join

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Step is one step that was taken, or would be in a dry run.
type Step struct {
	// Side is "hub" or "member".
	Side string
	// Verb is what was done: "created", "kept", "updated", "removed", "let go of",
	// "claimed by", "released by", "would create", "would update", "would remove",
	// "would leave", "would put this control plane's claim on" or "would take this
	// control plane's claim off".
	Verb string
	// Object is the kind and name of the object.
	Object string
}

// String returns the step as a line for people.
func (s Step) String() string { return fmt.Sprintf("%s %s (%s)", s.Verb, s.Object, s.Side) }

// side is one of the two clusters, for writing to it.
type side struct {
	name     string
	client   client.Client
	dry      bool
	progress func(Step)
}

func (s side) report(verb string, obj client.Object) {
	s.progress(Step{Side: s.name, Verb: verb, Object: s.describe(obj)})
}

// describe returns the kind and name of an object, as in "Secret
// karmada-cluster/eu-1".
func (s side) describe(obj client.Object) string {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(obj, s.client.Scheme()); err == nil {
		kind = gvk.Kind
	}
	if obj.GetNamespace() == "" {
		return kind + " " + obj.GetName()
	}
	return kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// create creates an object that must not exist.
func (s side) create(ctx context.Context, obj client.Object) error {
	if s.dry {
		s.report("would create", obj)
		return nil
	}
	if err := s.client.Create(ctx, obj); err != nil {
		return fmt.Errorf("create %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.report("created", obj)
	return nil
}

// put creates an object, or updates the present one: the data of a Secret, the
// rules of a role, and the subjects of a binding.
func (s side) put(ctx context.Context, obj client.Object) error {
	wanted, ok := obj.DeepCopyObject().(client.Object)
	err := s.create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) || !ok {
		return err
	}
	current, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return err
	}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return fmt.Errorf("read %s on the %s: %w", s.describe(obj), s.name, err)
	}
	before, ok := current.DeepCopyObject().(client.Object)
	if !ok || !renew(current, wanted) {
		s.report("kept", obj)
		return nil
	}
	if err := s.client.Patch(ctx, current, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("update %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.report("updated", obj)
	return nil
}

// renew updates current to wanted, and reports whether they differed.
func renew(current, wanted client.Object) bool {
	before := current.DeepCopyObject()
	switch is := current.(type) {
	case *corev1.Secret:
		if w, ok := wanted.(*corev1.Secret); ok && len(w.Data) > 0 {
			is.Data = w.Data
		}
	case *rbacv1.ClusterRole:
		if w, ok := wanted.(*rbacv1.ClusterRole); ok {
			is.Rules = w.Rules
		}
	case *rbacv1.ClusterRoleBinding:
		if w, ok := wanted.(*rbacv1.ClusterRoleBinding); ok {
			is.Subjects = w.Subjects
		}
	}
	return !equality.Semantic.DeepEqual(before, current)
}

// write creates the Cluster, or updates it if it was read from the hub.
func (s side) write(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if cluster.ResourceVersion == "" {
		return s.create(ctx, cluster)
	}
	// Its loop writes it, too.
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return s.update(ctx, cluster) })
}

// update updates the Cluster, as it is now.
func (s side) update(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	current := &clusterv1alpha1.Cluster{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(cluster), current); err != nil {
		return fmt.Errorf("read %s on the %s: %w", s.describe(cluster), s.name, err)
	}
	updated := current.DeepCopy()
	updated.Spec, updated.Annotations = cluster.Spec, cluster.Annotations
	switch {
	case equality.Semantic.DeepEqual(current, updated):
		s.report("kept", cluster)
		return nil
	case s.dry:
		s.report("would update", cluster)
		return nil
	}
	patch := client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, updated, patch); err != nil {
		return fmt.Errorf("update %s on the %s: %w", s.describe(cluster), s.name, err)
	}
	s.report("updated", cluster)
	return nil
}

// own makes the Cluster the owner of a Secret, so that the Secret is removed with
// it.
func (s side) own(ctx context.Context, cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) error {
	current := &corev1.Secret{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(secret), current); err != nil {
		return fmt.Errorf("read %s on the %s: %w", s.describe(secret), s.name, err)
	}
	updated := current.DeepCopy()
	updated.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1alpha1.GroupVersion.String(),
		Kind:       clusterv1alpha1.ResourceKindCluster,
		Name:       cluster.Name,
		UID:        cluster.UID,
	}}
	if err := s.client.Patch(ctx, updated, client.MergeFrom(current)); err != nil {
		return fmt.Errorf("tie %s to the cluster: %w", s.describe(secret), err)
	}
	return nil
}

// remove deletes an object, if it exists.
func (s side) remove(ctx context.Context, obj client.Object) error {
	if s.dry {
		s.report("would remove", obj)
		return nil
	}
	err := s.client.Delete(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.report("removed", obj)
	return nil
}
