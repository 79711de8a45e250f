package forecast

import (
	"context"
	"errors"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/cascadingdeletion"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// refusal is why a Kustomization does not apply a revision, which nobody can allow.
type refusal struct{ reason, text string }

// holder finds out who does not apply a revision.
type holder struct{ *course }

// hold finds the Kustomizations that will not apply the revision, and keep what they have. It reports whether it has
// found more of them than before: the others may change by that.
func (c holder) hold(ctx context.Context) (bool, error) {
	index := siblings.New(values{kustomizations: c.alive}, c.wants, c.Eligible)
	before, taken := len(c.held), map[inventory.ID]client.ObjectKey{}
	for _, key := range sorted(c.alive) {
		m, applies := c.applies(key)
		if !applies {
			continue
		}
		index.Learn(c.alive[key], c.at, m.wants)
		why, err := c.refused(ctx, index, key, c.planned(m, taken))
		if err != nil {
			return false, err
		}
		if why.text != "" {
			c.held[key] = why
			continue
		}
		for _, e := range m.entries {
			taken[e.ID] = key
		}
	}
	return len(c.held) > before, nil
}

// complete has the control plane complete what these Kustomizations apply, and those that take something over from them; nil
// are all. It reports whether there is one of which it will not take something.
func (c holder) complete(ctx context.Context, within map[client.ObjectKey]bool) (more bool, err error) {
	if c.Complete == nil {
		return false, nil
	}
	for _, key := range sorted(c.alive) {
		m, applies := c.applies(key)
		concerned := func(obj *unstructured.Unstructured) bool { return result{c.course}.concerns(within, obj) }
		if !applies || m.complete || !slices.ContainsFunc(m.objects, concerned) {
			continue
		}
		objects, err := c.Complete(ctx, m.objects)
		if refused := (NotTakenError{}); errors.As(err, &refused) {
			c.held[key] = refusal{comparison.RiskNotTaken, refused.Error() + "; it keeps what it has"}
			more = true
			continue
		}
		if err != nil {
			return false, err
		}
		m.objects, m.wants, m.complete = objects, siblings.WantsOf(m.entries, objects), true
		c.builds[key] = m
	}
	return more, nil
}

// refused returns why a Kustomization does not apply the revision; the zero value if it does.
func (c holder) refused(ctx context.Context, index *siblings.Index, key client.ObjectKey, changes []applier.Change) (refusal, error) {
	ks, m := c.alive[key], c.builds[key]
	if awaited, waits := c.awaits(ks); waits {
		return refusal{comparison.RiskDependency, fmt.Sprintf("it depends on Kustomization %s, which will not be ready at this revision", awaited)}, nil
	}
	query := siblings.SharedQuery{Of: ks, At: c.at, Changes: changes, Added: inventory.Compare(c.before.Owned[key], m.entries).Added}
	found, err := siblings.FindShared(ctx, index, query)
	if err != nil {
		return refusal{}, err
	}
	if len(found.Shared) > 0 {
		return refusal{comparison.RiskShared, c.revision.words(siblings.SharedError(found.Shared, key, "", c.revision.name()).Error())}, nil
	}
	if err := cascadingdeletion.Homeless(inventory.WithoutRegenerated(c.leaving[key].Deleted, m.entries), m.entries, c.revision.name(), false); err != nil {
		return refusal{comparison.RiskBrake, c.revision.words(err.Error())}, nil
	}
	return refusal{}, nil
}

// awaits returns a Kustomization that another one depends on, and that does not apply the revision.
func (c holder) awaits(ks *kustomizev1.Kustomization) (client.ObjectKey, bool) {
	return firstOf(dependencies.Keys(ks), func(key client.ObjectKey) bool {
		on := c.alive[key]
		if on == nil || !c.follows(on) {
			return false
		}
		_, applies := c.applies(key)
		return !applies
	})
}

// strand finds the Kustomizations that depend on one which the revision removes. It is asked once nothing else holds
// any: what is held removes nothing.
func (c holder) strand() (more bool) {
	for _, key := range sorted(c.alive) {
		if _, applies := c.applies(key); !applies {
			continue
		}
		if on, removed := firstOf(dependencies.Keys(c.alive[key]), func(key client.ObjectKey) bool { return c.gone[key] }); removed {
			c.held[key] = refusal{comparison.RiskDependency, fmt.Sprintf("it depends on Kustomization %s, which the change removes: name another one in spec.dependsOn, or none", on)}
			more = true
		}
	}
	return more
}

// firstOf returns the first key of which is holds.
func firstOf(keys []client.ObjectKey, is func(client.ObjectKey) bool) (client.ObjectKey, bool) {
	if at := slices.IndexFunc(keys, is); at >= 0 {
		return keys[at], true
	}
	return client.ObjectKey{}, false
}
