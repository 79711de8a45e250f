package join

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Step is one thing that was done, or would be.
type Step struct {
	// Side is "hub" or "member".
	Side string
	// Verb says what was done: "created", "kept", "updated", "removed",
	// "would create" or "would remove".
	Verb string
	// Object is the kind and name of what it was done to.
	Object string
}

// String returns the step as a line for people.
func (s Step) String() string { return fmt.Sprintf("%s %s (%s)", s.Verb, s.Object, s.Side) }

// side is one of the two clusters.
type side struct {
	name     string
	client   client.Client
	dry      bool
	progress func(Step)
}

func (s side) tell(verb string, obj client.Object) {
	s.progress(Step{Side: s.name, Verb: verb, Object: s.describe(obj)})
}

// describe names an object: "Secret karmada-cluster/eu-1".
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

// create makes an object that must not be there.
func (s side) create(ctx context.Context, obj client.Object) error {
	if s.dry {
		s.tell("would create", obj)
		return nil
	}
	if err := s.client.Create(ctx, obj); err != nil {
		return fmt.Errorf("create %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.tell("created", obj)
	return nil
}

// put makes an object, or keeps the one that is there. Of a Secret, the data is
// brought up to date.
func (s side) put(ctx context.Context, obj client.Object) error {
	wanted, isSecret := obj.DeepCopyObject().(*corev1.Secret)
	err := s.create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if !isSecret || len(wanted.Data) == 0 {
		s.tell("kept", obj)
		return nil
	}
	current := &corev1.Secret{}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
		return fmt.Errorf("read %s on the %s: %w", s.describe(obj), s.name, err)
	}
	updated := current.DeepCopy()
	updated.Data = wanted.Data
	if err := s.client.Patch(ctx, updated, client.MergeFrom(current)); err != nil {
		return fmt.Errorf("update %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.tell("updated", obj)
	return nil
}

// own ties an object to the Cluster, so that it goes with it.
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

// remove deletes an object, if it is there.
func (s side) remove(ctx context.Context, obj client.Object) error {
	if s.dry {
		s.tell("would remove", obj)
		return nil
	}
	err := s.client.Delete(ctx, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s on the %s: %w", s.describe(obj), s.name, err)
	}
	s.tell("removed", obj)
	return nil
}
