package switchover

import (
	"context"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// arrivals are Kustomizations that an artifact is about to bring, or to give another spec, by name.
type arrivals map[client.ObjectKey]arrival

// arrival is such a Kustomization as it will be, and what it will want.
type arrival struct {
	as    *kustomizev1.Kustomization
	wants siblings.Wants
}

// forecast knows what an artifact is about to change of Kustomizations.
type forecast struct {
	siblings *siblings.Index
	order    order
	differs  Differs
}

// arriving returns the Kustomizations that siblings of one are about to make or change with an artifact, or it itself, as it is
// about to write own: none of more than mostRelated, as each is built for that. Those that wait for it, or for which it waits, are not
// among them.
//
// What is there is judged by a list that was made before anything else was read: what arrives since is not among what was found there.
func (f forecast) arriving(ctx context.Context, list []kustomizev1.Kustomization, of *kustomizev1.Kustomization, at siblings.Artifact, own []*kustomizev1.Kustomization) (arrivals, error) {
	makers, err := f.makers(ctx, list, of, at)
	if err != nil {
		return nil, err
	}
	all, wanted := arrivals{}, slices.Clone(own)
	for _, ks := range makers {
		wants, err := f.siblings.Wants(ctx, ks, at)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, wants.Children...)
	}
	for i := 0; i < len(wanted) && len(all) <= mostRelated; i++ {
		key := client.ObjectKeyFromObject(wanted[i])
		if _, known := all[key]; known || key == client.ObjectKeyFromObject(of) || wanted[i].Spec.Suspend || stands(list, wanted[i]) || !f.siblings.Is(wanted[i], of.Namespace, at) {
			continue
		}
		wants, err := f.siblings.Wants(ctx, wanted[i], at)
		if err != nil {
			return nil, err
		}
		all[key] = arrival{as: wanted[i], wants: wants}
		wanted = append(wanted, wants.Children...)
	}
	if len(all) > mostRelated {
		return nil, nil
	}
	return f.unordered(ctx, of, all)
}

// unordered returns those of the arrivals between which and one spec.dependsOn gives no order.
func (f forecast) unordered(ctx context.Context, of *kustomizev1.Kustomization, all arrivals) (arrivals, error) {
	order, out := f.order.with(all), arrivals{}
	for key, one := range all {
		ordered, err := order.between(ctx, one.as, of)
		if err != nil {
			return nil, err
		}
		if !ordered {
			out[key] = one
		}
	}
	return out, nil
}

// makers are the siblings that have yet to write an artifact which holds something else for them. Each has to be built to find out
// whom it makes: of more than mostRelated those alone count that hold Kustomizations already, and of more than that none.
func (f forecast) makers(ctx context.Context, list []kustomizev1.Kustomization, of *kustomizev1.Kustomization, at siblings.Artifact) ([]*kustomizev1.Kustomization, error) {
	var parents, others []*kustomizev1.Kustomization
	for i := range list {
		ks := &list[i]
		into := &others
		if makesSome(ks) {
			into = &parents
		}
		if len(*into) > mostRelated || client.ObjectKeyFromObject(ks) == client.ObjectKeyFromObject(of) || !f.siblings.Is(ks, of.Namespace, at) || decide(ks, at) != willWrite {
			continue
		}
		changes, err := f.atOnce(ctx, of, at, ks)
		if err != nil {
			return nil, err
		}
		if changes {
			*into = append(*into, ks)
		}
	}
	var out []*kustomizev1.Kustomization
	for _, some := range [][]*kustomizev1.Kustomization{parents, others} {
		if len(some) <= mostRelated {
			out = append(out, some...)
		}
	}
	return out, nil
}

// atOnce reports whether the artifact changes something of a Kustomization that does not wait for this one, nor this one for it, nor for
// what does not come.
func (f forecast) atOnce(ctx context.Context, of *kustomizev1.Kustomization, at siblings.Artifact, ks *kustomizev1.Kustomization) (bool, error) {
	if !apimeta.IsStatusConditionTrue(ks.Status.Conditions, revisiongate.Condition) {
		if differs, err := f.differs(ctx, ks, at); err != nil || !differs {
			return false, err
		}
	}
	if ordered, err := f.order.between(ctx, ks, of); err != nil || ordered {
		return false, err
	}
	stuck, err := f.order.stuck(ctx, ks, at)
	return !stuck && err == nil, err
}

// isSibling reports whether a Kustomization, which may be being deleted, is one that may exchange objects with another one.
func (f forecast) isSibling(ks, of *kustomizev1.Kustomization, at siblings.Artifact) bool {
	was := *ks
	was.DeletionTimestamp = nil
	return f.siblings.Is(&was, of.Namespace, at)
}

// makesSome reports whether a Kustomization holds others.
func makesSome(ks *kustomizev1.Kustomization) bool {
	return ks.Status.Inventory != nil && slices.ContainsFunc(ks.Status.Inventory.Entries, func(ref kustomizev1.ResourceRef) bool {
		return strings.HasSuffix(ref.ID, "_"+kustomizev1.GroupVersion.Group+"_"+kustomizev1.KustomizationKind)
	})
}

// stands reports whether a Kustomization is there with the spec that it is to have, or is suspended, which a person may have done: then
// it does not write whatever spec it gets.
func stands(list []kustomizev1.Kustomization, wanted *kustomizev1.Kustomization) bool {
	return slices.ContainsFunc(list, func(ks kustomizev1.Kustomization) bool {
		return client.ObjectKeyFromObject(&ks) == client.ObjectKeyFromObject(wanted) && (ks.Spec.Suspend || equality.Semantic.DeepEqual(ks.Spec, wanted.Spec))
	})
}

// mayChange reports whether who made a Kustomization has yet to write an artifact, and may change it by that.
func (f forecast) mayChange(ctx context.Context, ks *kustomizev1.Kustomization, at siblings.Artifact) (bool, error) {
	by, owned := inventory.OwnerOf(ks)
	if !owned {
		return false, nil
	}
	parent, err := f.order.read(ctx, by)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && decide(parent, at) == willWrite, err
}

// made returns the Kustomizations that one is about to write.
func made(q Query) []*kustomizev1.Kustomization {
	var written []*kustomizev1.Kustomization
	for _, c := range q.Changes {
		if c.Writes() {
			written = append(written, siblings.ChildrenIn([]*unstructured.Unstructured{c.Desired})...)
		}
	}
	return written
}
