package switchover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// mostRelated is with how many Kustomizations one is switched for what it carries or overrides of theirs, or they of it: to have
// all of a fleet count at the same time for a rule that means all of it would have everybody wait for the slowest.
const mostRelated = 20

// related returns the siblings for which the artifact holds something else, too, where their policies and overrides mean
// what is written here, as they are or as they will be, or those that are written here mean something of theirs, or the same as one of
// theirs; siblings that the artifact is about to bring are among them. It returns none of more than mostRelated, and none between
// which and this one spec.dependsOn gives an order.
func (x *Groups) related(ctx context.Context, q Query, all []kustomizev1.Kustomization) ([]client.ObjectKey, error) {
	of := relation{x, q, written(q)}
	if of.changed.isEmpty() {
		return nil, nil
	}
	own := client.ObjectKeyFromObject(q.Of)
	var out []client.ObjectKey
	var others []*kustomizev1.Kustomization
	for i := range all {
		ks := &all[i]
		if ks.DeletionTimestamp != nil { // its policies go with it, and may carry what is written here
			ends, err := of.endsWith(ctx, ks)
			if err != nil {
				return nil, err
			}
			if ends {
				out = append(out, client.ObjectKeyFromObject(ks))
			}
			continue
		}
		if client.ObjectKeyFromObject(ks) == own || !x.siblings.Is(ks, q.Of.Namespace, q.At) {
			continue
		}
		relates, differs, err := of.relates(ctx, ks)
		switch {
		case err != nil:
			return nil, err
		case relates:
			out = append(out, client.ObjectKeyFromObject(ks))
		case differs:
			others = append(others, ks)
		}
	}
	anew, err := of.anew(ctx, others)
	if err != nil {
		return nil, err
	}
	brought, err := brought(q, of.changed)
	if err != nil {
		return nil, err
	}
	out = slices.Concat(out, anew, brought)
	if len(out) > mostRelated {
		return nil, nil
	}
	return out, nil
}

// relation asks which Kustomizations hold something that belongs to what a revision changes.
type relation struct {
	groups  *Groups
	query   Query
	changed changed
}

// relates reports whether a sibling holds something that belongs to what is changed, and differs at the artifact, or is about to be deleted
// with it; else it may come to do so, if it may differ.
func (r relation) relates(ctx context.Context, ks *kustomizev1.Kustomization) (relates, may bool, err error) {
	may = awaits(ks, r.query)
	if !may && len(r.changed.rules) == 0 {
		return false, false, nil
	}
	if relates, err = r.groups.mean(ctx, ks, r.changed.rules, r.changed); err != nil || !relates {
		return false, may, err
	}
	if may {
		if relates, err = r.groups.forecast.atOnce(ctx, r.query.Of, r.query.At, ks); err != nil || relates {
			return relates, false, err
		}
	}
	relates, err = r.groups.forecast.yetToDrop(ctx, ks, r.query.Of, r.query.At)
	return relates, false, err
}

// endsWith reports whether a sibling is being deleted whose policies or overrides mean something of what is changed: those that it does
// not hand over go with it.
func (r relation) endsWith(ctx context.Context, ks *kustomizev1.Kustomization) (bool, error) {
	if !r.groups.forecast.isSibling(ks, r.query.Of, r.query.At) || decide(ks, r.query.At) != willWrite {
		return false, nil
	}
	return r.groups.mean(ctx, ks, nil, r.changed)
}

// anew returns those of the others whose policies and overrides come to mean something of what is changed, with the artifact. They have
// to be built for that: where the artifact is another one for more than mostRelated of them none is.
func (r relation) anew(ctx context.Context, others []*kustomizev1.Kustomization) ([]client.ObjectKey, error) {
	var build []*kustomizev1.Kustomization
	for _, ks := range others {
		at, err := r.groups.forecast.atOnce(ctx, r.query.Of, r.query.At, ks)
		if err != nil {
			return nil, err
		}
		if !at {
			continue
		}
		if build = append(build, ks); len(build) > mostRelated {
			return nil, nil
		}
	}
	var out []client.ObjectKey
	for _, ks := range build {
		wants, err := r.groups.siblings.Wants(ctx, ks, r.query.At)
		if err != nil {
			return nil, err
		}
		if r.changed.meantByAny(wants.Rules) {
			out = append(out, client.ObjectKeyFromObject(ks))
		}
	}
	return out, nil
}

// brought returns those of the Kustomizations that the artifact brings, or gives another spec, whose policies and overrides mean
// something of what is changed.
func brought(q Query, by changed) ([]client.ObjectKey, error) {
	all, err := q.arriving()
	if err != nil {
		return nil, err
	}
	var out []client.ObjectKey
	for key, one := range all {
		if by.meantByAny(one.wants.Rules) {
			out = append(out, key)
		}
	}
	return out, nil
}

// awaits reports whether a sibling has yet to write the artifact, and does not refuse it, by what its status says, or has written it
// and says that it waits for others.
func awaits(ks *kustomizev1.Kustomization, q Query) bool {
	switch {
	case ks.Spec.Suspend:
		return false
	case apimeta.IsStatusConditionTrue(ks.Status.Conditions, revisiongate.Condition):
		return true
	case refuses(ks, q.At):
		return false
	default:
		return ks.Status.LastAttemptedRevision != q.At.Revision || lastgood.In(ks.Status).Artifact != q.At.Digest
	}
}

// mean reports whether one of the rules means something that a Kustomization holds, or one of its rules something of what is changed.
func (x *Groups) mean(ctx context.Context, ks *kustomizev1.Kustomization, rules []rule, by changed) (bool, error) {
	if ks.Status.Inventory == nil || inventory.PlaceOf(ks.Status) != (inventory.Place{}) {
		return false, nil
	}
	for _, ref := range ks.Status.Inventory.Entries {
		isRule := strings.Contains(ref.ID, "_"+policyv1alpha1.GroupVersion.Group+"_")
		if !isRule && len(rules) == 0 {
			continue
		}
		entries, err := inventory.Read(&kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{ref}})
		if err != nil {
			continue // whoever applies it reports that
		}
		if means, err := x.meansEntry(ctx, entries[0], rules, by); means || err != nil {
			return means, err
		}
	}
	return false, nil
}

func (x *Groups) meansEntry(ctx context.Context, e inventory.Entry, rules []rule, by changed) (bool, error) {
	obj := inventory.NewRule(e.ID.GroupKind)
	if obj == nil {
		return meansEntry(rules, e), nil
	}
	err := x.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look what %s means: %w", inventory.Describe(e.ID), err)
	}
	return by.meantBy(ruleAs(obj)), nil
}
