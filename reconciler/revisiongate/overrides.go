package revisiongate

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// overrides are the versions in force, and those that will be. The namespace of a key is empty for
// cluster-wide ones.
type overrides struct {
	index override.Index
	// counting are those in the index, by name.
	counting map[client.ObjectKey]policyv1alpha1.Override
	// latest are the latest versions.
	latest map[client.ObjectKey]policyv1alpha1.Override
	// pending are those of which another version will count than does, or none, by the Kustomization
	// that is being switched.
	pending map[client.ObjectKey][]client.ObjectKey
}

func newOverrides() overrides {
	return overrides{
		counting: map[client.ObjectKey]policyv1alpha1.Override{}, latest: map[client.ObjectKey]policyv1alpha1.Override{},
		pending: map[client.ObjectKey][]client.ObjectKey{},
	}
}

// hear records the latest version of an override, nil for none.
func (o *overrides) hear(key client.ObjectKey, latest policyv1alpha1.Override) {
	if latest == nil {
		delete(o.latest, key)
		return
	}
	o.latest[key] = latest
}

// postpone makes the latest version of an override take effect once owner is switched.
func (o *overrides) postpone(owner, key client.ObjectKey) {
	if !slices.Contains(o.pending[owner], key) {
		o.pending[owner] = append(o.pending[owner], key)
	}
}

// inForce returns the overrides that count for a resource of a Kustomization, empty for none. Where that is not known, as
// one of the mixed ones holds the resource or an override for it, it returns that one.
func (o *overrides) inForce(r selector.Resource, owner client.ObjectKey, mixed map[client.ObjectKey]bool) (found []policyv1alpha1.Override, by client.ObjectKey, known bool) {
	found = o.index.Of(r)
	if len(mixed) == 0 {
		return found, owner, true
	}
	if mixed[owner] {
		return nil, owner, false
	}
	for _, o := range found {
		if owner, owned := inventory.OwnerOf(o); owned && mixed[owner] {
			return nil, owner, false
		}
	}
	return found, owner, true
}

// count makes the latest version of an override take effect. It returns the versions before and after, as far
// as there are any.
func (o *overrides) count(key client.ObjectKey) []policyv1alpha1.Override {
	var versions []policyv1alpha1.Override
	if before := o.counting[key]; before != nil {
		versions = append(versions, before)
		o.index.Remove(before)
		delete(o.counting, key)
	}
	if after := o.latest[key]; after != nil {
		versions = append(versions, after)
		o.index.Set(after)
		o.counting[key] = after
	}
	return versions
}

// awaiting returns the versions of each override that waits for the end of owner's switch: the one that
// counts, and the one that will.
func (o *overrides) awaiting(owner client.ObjectKey) [][]policyv1alpha1.Override {
	var out [][]policyv1alpha1.Override
	for _, key := range o.pending[owner] {
		var versions []policyv1alpha1.Override
		for _, in := range []map[client.ObjectKey]policyv1alpha1.Override{o.counting, o.latest} {
			if version := in[key]; version != nil {
				versions = append(versions, version)
			}
		}
		out = append(out, versions)
	}
	return out
}

// countPending makes the overrides take effect that waited for the end of the switch of owner.
func (o *overrides) countPending(owner client.ObjectKey) {
	for _, key := range o.pending[owner] {
		o.count(key)
	}
	delete(o.pending, owner)
}

// hear records an event of an override: after is nil for one that is gone. First is true for what existed
// before the watch began.
func (t *Tracker) hear(before, after policyv1alpha1.Override, first bool) {
	one := after
	if one == nil {
		one = before
	}
	key := client.ObjectKeyFromObject(one)
	owner, owned := inventory.OwnerOf(one)

	t.mu.Lock()
	t.overrides.hear(key, after)
	waits := owned && t.switches(owner)
	var versions []policyv1alpha1.Override
	switch {
	case waits && first: // which version counted is not known: Overrides says so
		t.overrides.count(key)
		t.overrides.postpone(owner, key)
	case waits:
		t.overrides.postpone(owner, key)
	default:
		versions = t.overrides.count(key)
	}
	t.mu.Unlock()

	if first || waits || !differ(before, after) {
		return
	}
	for _, l := range t.listeners {
		if l.Override != nil {
			l.Override(versions...)
		}
	}
}

// differ reports whether two versions of an override, nil for none, may ask for something else.
func differ(before, after policyv1alpha1.Override) bool {
	return before == nil || after == nil || before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// seen reports whether a version of an override, or its deletion, was received.
func (o *overrides) seen(v Version) bool {
	latest := o.latest[v.ObjectKey]
	if v.Gone {
		return latest == nil || v.seenAs(latest)
	}
	return latest != nil && v.seenAs(latest)
}
