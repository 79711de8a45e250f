package cascadingdeletion

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// named is how many objects an error names.
const named = 3

// Staying returns the entries without those whose namespace is gone or being deleted: they go with the namespace,
// which somebody has deleted already.
func (c *Counter) Staying(ctx context.Context, entries []inventory.Entry) ([]inventory.Entry, error) {
	goes := map[string]bool{}
	var out []inventory.Entry
	for _, e := range entries {
		if _, known := goes[e.ID.Namespace]; !known && e.ID.Namespace != "" {
			var space corev1.Namespace
			err := c.hub.Get(ctx, client.ObjectKey{Name: e.ID.Namespace}, &space)
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read namespace %s: %w", e.ID.Namespace, err)
			}
			goes[e.ID.Namespace] = apierrors.IsNotFound(err) || space.DeletionTimestamp != nil
		}
		if !goes[e.ID.Namespace] {
			out = append(out, e)
		}
	}
	return out, nil
}

// there returns those of the objects of a Kustomization that go with it: not those that go with their namespace or are
// gone already. Of what is neither precious nor a workload that is not looked at, as it weighs little.
func (c *Counter) there(ctx context.Context, entries []inventory.Entry) ([]inventory.Entry, error) {
	staying, err := c.Staying(ctx, entries)
	if err != nil {
		return nil, err
	}
	var out []inventory.Entry
	for _, e := range staying {
		if inventory.PreciousKind(e.ID.GroupKind) != "" || inventory.IsWorkload(e.ID) {
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(e.GroupVersionKind())
			err := c.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj)
			if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", inventory.Describe(e.ID), err)
			}
		}
		out = append(out, e)
	}
	return out, nil
}

// Homeless returns an error if a revision drops a Namespace and still holds objects in it, even if people have allowed
// the deletion: the objects would be deleted, and could not be created again. stands says that the revision is applied
// already, which changes the text.
func Homeless(dropped, desired []inventory.Entry, revision string, stands bool) error {
	for _, e := range dropped {
		if e.ID.GroupKind != namespaceKind {
			continue
		}
		within := slices.DeleteFunc(slices.Clone(desired), func(d inventory.Entry) bool { return d.ID.Namespace != e.ID.Name })
		if len(within) > 0 {
			return fmt.Errorf("revision %s drops %s and has %s in it: %s; drop that, too, or commit the namespace again",
				revision, inventory.Describe(e.ID), inventory.First(inventory.IDsOf(within), named), inventory.Refused(stands))
		}
	}
	return nil
}
