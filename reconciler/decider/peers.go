package decider

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement/framework"
)

// group is one of the groups that bindings want to be with, or apart from.
type group struct {
	// namespace of the bindings; empty for cluster-scoped ones.
	namespace string
	// name is the group's, after the kind that it is of.
	name string
}

const (
	affinityGroups     = "affinity/"
	antiAffinityGroups = "antiAffinity/"
)

// groupsOf returns the groups that b is in.
func groupsOf(b workv1alpha2.Binding) []group {
	in := b.BindingSpec().WorkloadAffinityGroups
	if in == nil {
		return nil
	}
	var out []group
	if in.AffinityGroup != "" {
		out = append(out, group{b.GetNamespace(), affinityGroups + in.AffinityGroup})
	}
	if in.AntiAffinityGroup != "" {
		out = append(out, group{b.GetNamespace(), antiAffinityGroups + in.AntiAffinityGroup})
	}
	return out
}

// byGroup is the index of bindings by the groups that they are in.
const byGroup = "workloadGroup"

// Index adds the index that decisions about groups of bindings need.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		if err := indexer.IndexField(ctx, kind, byGroup, groupNames); err != nil {
			return fmt.Errorf("index bindings by group: %w", err)
		}
	}
	return nil
}

func groupNames(obj client.Object) []string {
	var names []string
	for _, g := range groupsOf(obj.(workv1alpha2.Binding)) {
		names = append(names, g.name)
	}
	return names
}

// peers returns the bindings that b is to be with or apart from, where they were
// placed last: as the reservations know it, or else as the cache does.
func (d *Decider) peers(ctx context.Context, b workv1alpha2.Binding) (framework.Peers, error) {
	var out framework.Peers
	in := b.BindingSpec().WorkloadAffinityGroups
	if in == nil {
		return out, nil
	}
	var err error
	if in.AffinityGroup != "" {
		if out.Affinity, err = d.peersIn(ctx, b, group{b.GetNamespace(), affinityGroups + in.AffinityGroup}); err != nil {
			return framework.Peers{}, err
		}
	}
	if in.AntiAffinityGroup != "" {
		if out.AntiAffinity, err = d.peersIn(ctx, b, group{b.GetNamespace(), antiAffinityGroups + in.AntiAffinityGroup}); err != nil {
			return framework.Peers{}, err
		}
	}
	return out, nil
}

func (d *Decider) peersIn(ctx context.Context, b workv1alpha2.Binding, g group) ([][]string, error) {
	own := client.ObjectKeyFromObject(b)
	// First the reservations, then the cache: what leaves the one is in the other.
	placed := d.reservations.members(g)
	delete(placed, own)
	err := each(ctx, d.hub, g, func(peer workv1alpha2.Binding) {
		key := client.ObjectKeyFromObject(peer)
		known, newer := placed[key]
		if key != own && (!newer || peer.GetGeneration() > known.generation) {
			placed[key] = member{clusters: namesOf(peer.BindingSpec().Clusters)}
		}
	})
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, m := range placed {
		if len(m.clusters) > 0 {
			out = append(out, m.clusters)
		}
	}
	return out, nil
}

// each calls yield for every binding of the group in the cache.
func each(ctx context.Context, hub client.Reader, g group, yield func(workv1alpha2.Binding)) error {
	opts := []client.ListOption{client.MatchingFields{byGroup: g.name}, client.UnsafeDisableDeepCopy}
	if g.namespace == "" {
		var list workv1alpha2.ClusterResourceBindingList
		if err := hub.List(ctx, &list, opts...); err != nil {
			return fmt.Errorf("list the cluster bindings of group %s: %w", g.name, err)
		}
		for i := range list.Items {
			yield(&list.Items[i])
		}
		return nil
	}
	var list workv1alpha2.ResourceBindingList
	if err := hub.List(ctx, &list, append(opts, client.InNamespace(g.namespace))...); err != nil {
		return fmt.Errorf("list the bindings of group %s: %w", g.name, err)
	}
	for i := range list.Items {
		yield(&list.Items[i])
	}
	return nil
}

// member is where a binding of a group was placed.
type member struct {
	generation int64
	clusters   []string
}

// members returns the bindings of the group about which the reservations know more
// than the cache.
func (r *reservations) members(g group) map[client.ObjectKey]member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[client.ObjectKey]member{}
	for key := range r.groups[g] {
		e := r.byBinding[key]
		out[key] = member{generation: e.generation, clusters: e.clusters}
	}
	return out
}
