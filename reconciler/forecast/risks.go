package forecast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// assessor looks at a revision as a whole.
type assessor struct{ *course }

// risks returns what the loop will refuse of the revision, and what is not followed; within are the Kustomizations that
// count, nil for all. What was refused in the same words before is no news.
func (c assessor) risks(ctx context.Context, within map[client.ObjectKey]bool) ([]comparison.Risk, error) {
	var out []comparison.Risk
	note := func(key client.ObjectKey, reason, text string) {
		if text != "" && (within == nil || within[key]) {
			out = append(out, comparison.KustomizationRisk(reason, key.String(), text))
		}
	}
	for _, key := range sorted(c.alive) {
		m, applies := c.applies(key)
		why, held := c.held[key]
		switch {
		case m.err != nil && m.err.Error() == c.before.refused[key], held && why.text == c.before.refused[key]:
		case m.err != nil:
			note(key, comparison.RiskBuild, fmt.Sprintf("it cannot be built, and keeps what it has: %v", m.err))
		case held:
			note(key, why.reason, why.text)
		case applies:
			note(key, comparison.RiskBrake, scales{c.course}.brake(key))
			reason, text, err := c.withdrawn(ctx, key, m)
			if err != nil {
				return nil, err
			}
			note(key, reason, text)
		}
	}
	for key, what := range c.unfollowed() {
		note(key, comparison.RiskNotFollowed, what)
	}
	return out, nil
}

func byPolicy(a, b comparison.Risk) int {
	return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Message, b.Message))
}

// still returns what was refused before in the same words, sorted.
func (c assessor) still(within map[client.ObjectKey]bool) []string {
	var out []string
	for _, key := range sorted(c.alive) {
		why := c.held[key].text
		if m := c.builds[key]; m.err != nil {
			why = m.err.Error()
		}
		if why != "" && why == c.before.refused[key] && (within == nil || within[key]) {
			out = append(out, fmt.Sprintf("Kustomization %s applies neither what was before nor the change: %s", key, why))
		}
	}
	slices.Sort(out)
	return out
}

// withdrawn returns why the loop refuses what policies take out of clusters; empty if it does not.
func (c assessor) withdrawn(ctx context.Context, key client.ObjectKey, m made) (reason, text string, err error) {
	changes := c.planned(m, nil)
	removed := inventory.Compare(c.before.Owned[key], m.entries).Removed
	if len(removed) == 0 && !slices.ContainsFunc(changes, applier.Change.Writes) {
		return "", "", nil
	}
	err = riskyedits.Check(ctx, values{c.before.Kustomizations, c.before.Fleet}, riskyedits.Revision{
		Name: c.revision.name(), Changes: changes, Seen: c.before.observed(key, inventory.Union(c.before.Owned[key], m.entries)),
		Labels: c.labels, Removed: inventory.IDsOf(removed), Allowed: c.allowance(c.alive[key], c.before.Owned[key], m.entries),
	})
	if refused := (*riskyedits.Refusal)(nil); errors.As(err, &refused) {
		reason = comparison.RiskBrake
		if refused.Reason() == riskyedits.ReasonUnknownCluster {
			reason = comparison.RiskUnknownCluster
		}
		return reason, c.revision.words(refused.Error()), nil
	}
	return "", "", err
}

// labels is a riskyedits.Labels.
func (c assessor) labels(template *unstructured.Unstructured) (map[string]string, bool, error) {
	there := c.before.Objects[inventory.IDOf(template)]
	return labelsOf(there), there != nil, nil
}

// same reports whether an object of files is what the state has: true only where the state came of files, too.
func same(obj, there *unstructured.Unstructured) bool {
	return obj == there || reflect.DeepEqual(obj.Object, there.Object)
}

// unfollowed returns the Kustomizations that change what they apply, and whose files these are not.
func (c assessor) unfollowed() map[client.ObjectKey]string {
	out := map[client.ObjectKey]string{}
	for key, ks := range c.alive {
		was := c.before.Kustomizations[key]
		if was == ks || c.follows(ks) || ks.DeletionTimestamp != nil || ks.Spec.Suspend {
			continue
		}
		where := fmt.Sprintf("its source is %s, which is not planned here", inventory.SourceOf(ks))
		if ks.Spec.KubeConfig != nil {
			where = "it applies to a cluster outside of the fleet"
		}
		switch {
		case was == nil:
			out[key] = "it comes, and " + where
		case !equality.Semantic.DeepEqual(was.Spec, ks.Spec):
			out[key] = "it changes, and " + where
		}
	}
	for _, key := range slices.Collect(maps.Keys(c.gone)) {
		if ks := c.before.Kustomizations[key]; ks != nil && inventory.PlaceOf(ks.Status) != (inventory.Place{}) && inventory.Deletes(ks) {
			out[key] = "it goes, and with it what it has applied to a cluster outside of the fleet"
		}
	}
	if c.endless {
		for _, key := range sorted(c.alive)[:1] {
			out[key] = fmt.Sprintf("Kustomizations that apply others are followed %d deep, and here they go on", mostRounds)
		}
	}
	return out
}
