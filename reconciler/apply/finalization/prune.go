package finalization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// prune deletes what may go, policies and overrides last, and notes what the account may not delete. waits says for what these have to
// wait; empty if they have not.
func (r Remover) prune(ctx context.Context, e *end, now time.Time) (waits string, err error) {
	rules, others := switchover.Rules(e.due(now))
	var stay []applier.Finding
	if stay, err = r.delete(ctx, e, others, nil); err != nil {
		return "", err
	}
	var along []*end
	if waits, err = r.release(ctx, e, others, rules); err == nil && waits == "" {
		along, waits, err = r.alongside(ctx, e, rules, now)
	}
	if err == nil && waits == "" {
		stay, err = r.deleteRules(ctx, e, rules, stay, along)
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

// deleteRules deletes policies and overrides so that the end of all of them counts at once, with those of the Kustomizations that go along:
// of several, those that are still there would count without the others. One that hands over is held as it is until others end that.
func (r Remover) deleteRules(ctx context.Context, e *end, rules []inventory.Entry, stay []applier.Finding, along []*end) ([]applier.Finding, error) {
	if r.deps.Switches == nil || len(rules) < 2 && len(along) == 0 || revisiongate.HandsOver(e.ks) {
		return r.delete(ctx, e, rules, stay)
	}
	r.deps.Switches.Begin(e.key, revisiongate.All)
	defer r.deps.Switches.End(ctx, e.key, nil)
	for _, other := range along {
		r.deps.Switches.Join(other.key, []client.ObjectKey{e.key})
	}
	stay, err := r.delete(ctx, e, rules, stay)
	if err != nil {
		return stay, err
	}
	versions := switchover.Written(nil, e.gone(rules), e.seen, false)
	for _, other := range along {
		theirs, _ := switchover.Rules(other.leaving.Deleted)
		if _, err := r.delete(ctx, other, theirs, nil); err != nil { // its own run says what its account may not delete
			return stay, err
		}
		versions = append(versions, switchover.Written(nil, other.gone(theirs), other.seen, false)...)
		e.Along = append(e.Along, other.Ending)
	}
	return stay, switchover.Await(ctx, r.deps.Switches, versions)
}

// gone are those of the entries that this run has deleted.
func (e *end) gone(of []inventory.Entry) []inventory.Entry {
	return slices.DeleteFunc(slices.Clone(of), func(entry inventory.Entry) bool { return !slices.Contains(e.Deleted, entry.ID) })
}

// alongside returns the Kustomizations that are being deleted, too, and whose policies and overrides have to go at the same time, or for
// what the rules have to wait instead: until all of these are being deleted, and have nothing to wait for. The first of them by name
// deletes for all.
func (r Remover) alongside(ctx context.Context, e *end, rules []inventory.Entry, now time.Time) (along []*end, waits string, err error) {
	if r.deps.Switches == nil || len(rules) == 0 || revisiongate.HandsOver(e.ks) {
		return nil, "", nil
	}
	found, err := r.deps.Retirements.Alongside(ctx, e.retired(rules))
	if err != nil {
		return nil, "", err
	}
	until := func(key client.ObjectKey) string {
		return fmt.Sprintf("%s counts until those of Kustomization %s go as well", inventory.Describe(rules[0].ID), siblings.Name(key, e.Within))
	}
	if len(found.Soon) > 0 {
		return nil, until(found.Soon[0]), nil
	}
	all := e.retired(rules)
	for _, ks := range found.Going {
		other, err := r.judge(ctx, ks)
		if err != nil {
			return nil, "", err
		}
		if !other.ready || other.refusal != nil || revisiongate.HandsOver(ks) { // of the second, somebody has to allow it
			continue
		}
		held, _ := switchover.Rules(other.doomed)
		theirs, rest := switchover.Rules(other.due(now))
		switch {
		case len(held) == 0:
			continue
		case other.key.String() < e.key.String(), len(theirs) < len(held), len(rest) > 0: // what is no rule goes by its own run, and first
			return nil, until(other.key), nil
		}
		all.Rules = append(all.Rules, other.retired(theirs).Rules...)
		along = append(along, other)
	}
	if len(along) == 0 {
		return nil, "", nil
	}
	begun, waits, err := r.released(ctx, e, rules, all)
	if err == nil && waits == "" {
		r.deps.Switches.Join(e.key, begun)
	}
	return along, waits, err
}

// released says for what rules have to wait that are about to go with an end, of which first are its own; empty for nothing. Begun are those
// who have begun with the commit: with these their end counts.
func (r Remover) released(ctx context.Context, e *end, first []inventory.Entry, all switchover.Retired) (begun []client.ObjectKey, waits string, err error) {
	dependants, err := r.deps.Retirements.Of(ctx, all)
	if err != nil {
		return nil, "", err
	}
	return dependants.Begun, dependants.Waits(first[0].ID, e.at.Revision, e.Within), nil
}

// retired are the rules of an end that are about to go.
func (e *end) retired(rules []inventory.Entry) switchover.Retired {
	out := switchover.Retired{Of: e.ks, At: e.at}
	for _, rule := range rules {
		out.Rules = append(out.Rules, e.seen[rule.ID])
	}
	return out
}

// release has policies and overrides go without anything being carried as neither the commit nor the one before has it: once the loops that
// carry templates have seen that those which went before are gone, and once others that the commit concerns have begun with it. With
// these the end of a rule then counts. It returns for what the rules have to wait instead; empty for nothing.
func (r Remover) release(ctx context.Context, e *end, gone, rules []inventory.Entry) (waits string, err error) {
	if r.deps.Switches == nil || len(rules) == 0 {
		return "", nil
	}
	begun, waits, err := r.released(ctx, e, rules, e.retired(rules))
	if err != nil || waits != "" {
		return waits, err
	}
	if err := switchover.Await(ctx, r.deps.Switches, switchover.Written(nil, e.gone(gone), e.seen, false)); err != nil {
		return "", err
	}
	r.deps.Switches.Join(e.key, begun)
	return "", nil
}
