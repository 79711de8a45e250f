package switchover

import (
	"context"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates are those that loops carry to clusters, as these loops see them.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Retirements find out for whom policies and overrides still count that go with Kustomizations which are being deleted: what these
// mean must not be carried without them before it is as the commit has it, or gone. Use NewRetirements.
type Retirements struct {
	groups    *Groups
	templates Templates // nil: nothing is carried
}

// NewRetirements returns Retirements.
func NewRetirements(groups *Groups, templates Templates) Retirements {
	return Retirements{groups, templates}
}

// Retired are policies and overrides that go with a Kustomization at an artifact.
type Retired struct {
	Of    *kustomizev1.Kustomization
	At    siblings.Artifact
	Rules []*unstructured.Unstructured
}

// Dependants are those for whom they still count.
type Dependants struct {
	// Late are the Kustomizations that have yet to begin with the artifact, and of which the rules mean something; empty once that
	// was waited for long enough.
	Late []client.ObjectKey
	// Going is a template that goes as well, with another Kustomization that is being deleted, and that is still carried.
	Going inventory.ID
	// Begun are the Kustomizations that are being switched: the rules may go once what they mean of these waits for that, too.
	Begun []client.ObjectKey
}

// Of returns for whom rules count that are about to go. Nobody is waited for longer than half a minute after the
// Kustomization was deleted.
func (r Retirements) Of(ctx context.Context, q Retired) (Dependants, error) {
	by := rulesOf(q.Rules)
	all, err := r.groups.all(ctx)
	if err != nil || len(by.rules) == 0 {
		return Dependants{}, err
	}
	var out Dependants
	over := r.groups.clock.Since(q.Of.DeletionTimestamp.Time) >= longest
	if !over {
		if out.Going, err = r.going(ctx, q, all, by.rules); err != nil {
			return Dependants{}, err
		}
	}
	if q.At.Digest == "" { // nobody applies anything
		return out, nil
	}
	found, err := r.writing(ctx, q, all, by)
	if err != nil {
		return Dependants{}, err
	}
	for _, ks := range found {
		if key := client.ObjectKeyFromObject(ks); revisiongate.HoldsAll(ks.Status.Conditions) {
			out.Begun = append(out.Begun, key)
		} else {
			out.Late = append(out.Late, key)
		}
	}
	if over {
		out.Late = nil
		return out, nil
	}
	arriving, err := r.arriving(ctx, q, all, by)
	if out.Late = append(out.Late, arriving...); len(out.Late)+len(out.Begun) > mostRelated { // nor do these wait for it
		out.Late, out.Begun = nil, nil
	}
	return out, err
}

// Concern reports whether policies or overrides that a Kustomization holds, which is about to be deleted, mean something that others write
// with the artifact: it has to go before that counts.
func (r Retirements) Concern(ctx context.Context, key client.ObjectKey, at siblings.Artifact) (bool, error) {
	x := r.groups
	ks, err := x.order.read(ctx, key)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	entries, err := inventory.Here(ks)
	if err != nil {
		return false, nil // whoever deletes it reports that
	}
	var by changed
	for _, e := range entries {
		obj := inventory.NewRule(e.ID.GroupKind)
		if obj == nil {
			continue
		}
		err := x.hub.Get(ctx, client.ObjectKey{Namespace: e.ID.Namespace, Name: e.ID.Name}, obj, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("look what %s means: %w", inventory.Describe(e.ID), err)
		}
		if err == nil {
			by.rules = append(by.rules, ruleAs(obj))
		}
	}
	if len(by.rules) == 0 {
		return false, nil
	}
	all, err := x.all(ctx)
	if err != nil {
		return false, err
	}
	q := Retired{Of: ks, At: at}
	if found, err := r.writing(ctx, q, all, by); err != nil || len(found) > 0 {
		return err == nil, err
	}
	arriving, err := r.arriving(ctx, q, all, by)
	return len(arriving) > 0, err
}

// Pause is how long to wait before it is asked again whether rules may go. The loop also hears of those that it waits for.
const Pause = time.Second

// Waits says for what rules have to wait, of which first is one; empty for nothing. within is the only namespace whose Kustomizations may be
// named, empty for all.
func (d Dependants) Waits(first inventory.ID, revision, within string) string {
	switch {
	case len(d.Late) > 0:
		return fmt.Sprintf("%s counts until Kustomization %s has begun with revision %s, which changes what it means", inventory.Describe(first), siblings.Name(d.Late[0], within), revision)
	case d.Going != (inventory.ID{}):
		return fmt.Sprintf("%s counts until %s, for which it means something, is gone as well", inventory.Describe(first), inventory.Describe(d.Going))
	default:
		return ""
	}
}

// going returns a template that some of the rules mean and that is about to go with another Kustomization; empty for none.
func (r Retirements) going(ctx context.Context, q Retired, all []kustomizev1.Kustomization, rules []rule) (inventory.ID, error) {
	for i := range all {
		ks := &all[i]
		if ks.DeletionTimestamp == nil || r.templates == nil || client.ObjectKeyFromObject(ks) == client.ObjectKeyFromObject(q.Of) ||
			!r.groups.forecast.isSibling(ks, q.Of, q.At) || decide(ks, q.At) != willWrite {
			continue
		}
		entries, err := inventory.Here(ks)
		if err != nil {
			continue // whoever deletes it reports that
		}
		for _, e := range entries {
			if !meansEntry(rules, e) {
				continue
			}
			if goes, err := r.goes(ctx, ks, e); goes || err != nil {
				return e.ID, err
			}
		}
	}
	return inventory.ID{}, nil
}

// goes reports whether an object of a Kustomization that is being deleted is a template that goes with it, and is still carried.
func (r Retirements) goes(ctx context.Context, ks *kustomizev1.Kustomization, e inventory.Entry) (bool, error) {
	obj, presence, err := r.templates.Get(ctx, templatestore.Key{GroupVersionKind: e.GroupVersionKind(), Namespace: e.ID.Namespace, Name: e.ID.Name})
	if err != nil {
		return false, fmt.Errorf("look whether %s is still carried: %w", inventory.Describe(e.ID), err)
	}
	if presence != templatestore.Present {
		return false, nil
	}
	owner, _ := inventory.OwnerOf(obj)
	return owner == client.ObjectKeyFromObject(ks) && len(applier.Prunable([]inventory.Entry{e}, applier.Observed{e.ID: obj})) > 0, nil
}

// writing returns the siblings that have yet to write the artifact, which changes something of them, or that are switched to it, where
// rules mean something of theirs, as it is or as it will be. Who holds nothing of that so far has to be built: where there are more than
// mostRelated of these none is.
func (r Retirements) writing(ctx context.Context, q Retired, all []kustomizev1.Kustomization, by changed) ([]*kustomizev1.Kustomization, error) {
	var found, build []*kustomizev1.Kustomization
	for i := range all {
		ks := &all[i]
		if client.ObjectKeyFromObject(ks) == client.ObjectKeyFromObject(q.Of) || !r.groups.siblings.Is(ks, q.Of.Namespace, q.At) || !isWriting(ks, q.At) {
			continue
		}
		means, err := r.groups.mean(ctx, ks, by.rules, by)
		if err != nil {
			return nil, err
		}
		if !means && len(build) > mostRelated {
			continue
		}
		changes, err := r.groups.forecast.atOnce(ctx, q.Of, q.At, ks)
		switch {
		case err != nil:
			return nil, err
		case changes && means:
			found = append(found, ks)
		case changes:
			build = append(build, ks)
		}
	}
	if len(build) > mostRelated {
		return found, nil
	}
	for _, ks := range build {
		wants, err := r.groups.siblings.Wants(ctx, ks, q.At)
		if err != nil {
			return nil, err
		}
		if by.meantIn(wants) {
			found = append(found, ks)
		}
	}
	return found, nil
}

// isWriting reports whether a Kustomization has yet to write an artifact, and will, or has an artifact count together with others.
func isWriting(ks *kustomizev1.Kustomization, at siblings.Artifact) bool {
	return !ks.Spec.Suspend && (apimeta.IsStatusConditionTrue(ks.Status.Conditions, revisiongate.Condition) || decide(ks, at) == willWrite)
}

// arriving returns the Kustomizations that the artifact is about to bring, or to give another spec, where rules mean something of theirs.
func (r Retirements) arriving(ctx context.Context, q Retired, all []kustomizev1.Kustomization, by changed) ([]client.ObjectKey, error) {
	arrivals, err := r.groups.forecast.arriving(ctx, all, q.Of, q.At, nil)
	var out []client.ObjectKey
	for key, one := range arrivals {
		if by.meantIn(one.wants) {
			out = append(out, key)
		}
	}
	return sorted(out, client.ObjectKey{}), err
}

// meantIn reports whether one of the rules means something that a Kustomization wants, or may mean what one of its rules means.
func (c changed) meantIn(wants siblings.Wants) bool {
	return c.meantByAny(wants.Rules) || slices.ContainsFunc(wants.Entries, func(e inventory.Entry) bool { return meansEntry(c.rules, e) })
}

// meansEntry reports whether one of the rules may mean an object of an inventory that is no rule itself.
func meansEntry(rules []rule, e inventory.Entry) bool {
	if inventory.NewRule(e.ID.GroupKind) != nil {
		return false
	}
	apiVersion, kind := e.GroupVersionKind().ToAPIVersionAndKind()
	resource := selector.Resource{APIVersion: apiVersion, Kind: kind, Namespace: e.ID.Namespace, Name: e.ID.Name}
	return slices.ContainsFunc(rules, func(r rule) bool { return r.means(resource) })
}
