// Package limits enforces how many Kustomizations a namespace may have, and how many objects, of which size, these own.
//
// In go a Kustomization, and the size of what it is about to own; out comes an error that names the limit.
// It reads Kustomizations, and writes nothing.
package limits

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
)

// Checker checks limits. Use New.
type Checker struct {
	hub   client.Reader
	rules tenancy.Rules
}

// New returns a Checker; hub reads from a cache.
func New(hub client.Reader, rules tenancy.Rules) Checker { return Checker{hub: hub, rules: rules} }

// Kustomizations refuses a Kustomization that is one too many in its namespace, unless it has been applied
// before. Older ones come first.
func (c Checker) Kustomizations(ctx context.Context, ks *kustomizev1.Kustomization) error {
	limits := c.rules.In(ks.Namespace)
	if limits[tenancy.Kustomizations] == 0 || ks.Status.LastAppliedRevision != "" {
		return nil
	}
	all, err := c.all(ctx, ks.Namespace)
	if err != nil {
		return err
	}
	have := int64(1)
	for i := range all {
		if tenancy.Older(&all[i], ks) {
			have++
		}
	}
	return exceeded(ks, limits.Check(ks.Namespace, tenancy.Kustomizations, have))
}

// Size is the size of what a Kustomization owns, or is about to own.
type Size struct {
	// Objects is the number of objects, and Bytes their size together, as JSON.
	Objects, Bytes int64
}

// Grow refuses a revision by which the Kustomizations of the namespace would own more than they may together. One
// that makes its own smaller is never refused.
func (c Checker) Grow(ctx context.Context, ks *kustomizev1.Kustomization, to Size) error {
	limits, have := c.rules.In(ks.Namespace), sizeOf(ks)
	if len(limits) == 0 || to.Objects <= have.Objects && to.Bytes <= have.Bytes {
		return nil
	}
	all, err := c.all(ctx, ks.Namespace)
	if err != nil {
		return err
	}
	sum := to
	for i := range all {
		if all[i].Name != ks.Name {
			other := sizeOf(&all[i])
			sum.Objects, sum.Bytes = sum.Objects+other.Objects, sum.Bytes+other.Bytes
		}
	}
	if to.Objects > have.Objects {
		err = limits.Check(ks.Namespace, tenancy.Objects, sum.Objects)
	}
	if err == nil && to.Bytes > have.Bytes {
		err = limits.Check(ks.Namespace, tenancy.ObjectSize, sum.Bytes)
	}
	return exceeded(ks, err)
}

// sizeOf returns the size that the status of a Kustomization records.
func sizeOf(ks *kustomizev1.Kustomization) Size {
	out := Size{Bytes: lastgood.In(ks.Status).Bytes}
	if ks.Status.Inventory != nil {
		out.Objects = int64(len(ks.Status.Inventory.Entries))
	}
	return out
}

func (c Checker) all(ctx context.Context, namespace string) ([]kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := c.hub.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Kustomizations of %s: %w", namespace, err)
	}
	return list.Items, nil
}

func exceeded(ks *kustomizev1.Kustomization, err error) error {
	if err == nil {
		return nil
	}
	return loop.Waiting(tenancy.ReasonLimitExceeded, min(intervals.Retry(ks), tenancy.CapacityPoll), err)
}
