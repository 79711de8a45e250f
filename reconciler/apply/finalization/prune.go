package finalization

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// prune deletes what may go, policies and overrides last, and notes what the account may not delete. waits says for what these have to
// wait; empty if they have not.
func (r Remover) prune(ctx context.Context, e *end, due []inventory.Entry) (waits string, err error) {
	rules, others := switchover.Rules(due)
	var stay []applier.Finding
	if stay, err = r.delete(ctx, e, others, nil); err != nil {
		return "", err
	}
	if waits, err = r.release(ctx, e, others, rules); err == nil && waits == "" {
		stay, err = r.deleteRules(ctx, e, rules, stay)
	}
	if len(stay) > 0 {
		e.Stays = fmt.Sprintf("%d objects stay: %v", len(stay), e.Actor.Explained(&applier.Refusal{Findings: stay}))
	}
	return waits, err
}

// delete deletes entries, and adds those that the account may not delete to what stays.
func (r Remover) delete(ctx context.Context, e *end, entries []inventory.Entry, stay []applier.Finding) ([]applier.Finding, error) {
	err := r.deps.Applier.Prune(ctx, e.key, e.Actor, slices.Clone(entries), e.seen)
	e.Deleted = append(e.Deleted, deleted(entries, err)...)
	if refusal := (*applier.Refusal)(nil); errors.As(err, &refusal) {
		return append(stay, refusal.Findings...), nil
	}
	return stay, err
}

// deleteRules deletes policies and overrides so that the end of all of them counts at once: of several, those that are still there would
// count without the others. One that hands over is held as it is until others end that.
func (r Remover) deleteRules(ctx context.Context, e *end, rules []inventory.Entry, stay []applier.Finding) ([]applier.Finding, error) {
	if r.deps.Switches == nil || len(rules) < 2 || revisiongate.HandsOver(e.ks) {
		return r.delete(ctx, e, rules, stay)
	}
	r.deps.Switches.Begin(e.key, revisiongate.All)
	defer r.deps.Switches.End(ctx, e.key, nil)
	stay, err := r.delete(ctx, e, rules, stay)
	if err != nil {
		return stay, err
	}
	gone := slices.DeleteFunc(slices.Clone(rules), func(entry inventory.Entry) bool { return !slices.Contains(e.Deleted, entry.ID) })
	return stay, switchover.Await(ctx, r.deps.Switches, switchover.Written(nil, gone, e.seen, false))
}

// release has policies and overrides go without anything being carried as neither the commit nor the one before has it: once the loops that
// carry templates have seen that those which went before are gone, and once others that the commit concerns have begun with it. With
// these the end of a rule then counts. It returns for what the rules have to wait instead; empty for nothing.
func (r Remover) release(ctx context.Context, e *end, gone, rules []inventory.Entry) (waits string, err error) {
	if r.deps.Switches == nil || len(rules) == 0 {
		return "", nil
	}
	var objects []*unstructured.Unstructured
	for _, rule := range rules {
		objects = append(objects, e.seen[rule.ID])
	}
	dependants, err := r.deps.Retirements.Of(ctx, switchover.Retired{Of: e.ks, At: e.at, Rules: objects})
	if err != nil {
		return "", err
	}
	if waits = dependants.Waits(rules[0].ID, e.at.Revision, e.Within); waits != "" {
		return waits, nil
	}
	gone = slices.DeleteFunc(slices.Clone(gone), func(entry inventory.Entry) bool { return !slices.Contains(e.Deleted, entry.ID) })
	if err := switchover.Await(ctx, r.deps.Switches, switchover.Written(nil, gone, e.seen, false)); err != nil {
		return "", err
	}
	r.deps.Switches.Join(e.key, dependants.Begun)
	return "", nil
}
