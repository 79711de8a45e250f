package situation

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/policies/orphans"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// leftovers adds what clusters have that no Work names. Claims that stay where their template was moved off are as that was announced,
// and are noted, and those of a template that is to be there are about to have a Work, or just got one; once a store was set back
// nobody knows.
func leftovers(s *Survey) {
	for _, c := range s.asides.passed.clusters {
		found := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound)
		if found == nil || !apimeta.IsStatusConditionTrue(c.Status.Conditions, found.Type) {
			continue
		}
		var known []types.NamespacedName
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld) {
			known = slices.DeleteFunc(volumes.StayingIn(c), func(claim types.NamespacedName) bool { return len(s.holders.of(claim, s.reach)) == 0 })
		}
		for _, claim := range known {
			if slices.Contains(s.holders.of(claim, s.reach), c.Name) {
				continue
			}
			s.fleet.Notes = append(s.fleet.Notes, Note{Kind: volumes.Kind().Kind, Namespace: claim.Namespace, Name: claim.Name,
				Message: "it stays in " + c.Name + " with its data, although its template is placed elsewhere", Next: "to give up its data there: flotilla prune --cluster " + c.Name + " --dry-run"})
		}
		if rest := orphans.Rest(found.Message, known); rest != "" {
			s.problem(Problem{State: Progressing, Kind: clusterv1alpha1.ResourceKindCluster, Name: c.Name, Message: rest, Next: remark.OrphansNext(c)})
		}
	}
}

// holders has the clusters that claims of other namespaces than the one that a status is about are placed in.
type holders map[inventory.ID][]string

// take adds a template, if it is a claim.
func (h holders) take(b workv1alpha2.Binding) {
	id := idOf(b.BindingSpec().Resource)
	if !volumes.IsVolumeClaim(id.GroupKind) {
		return
	}
	for _, t := range b.BindingSpec().Clusters {
		h[id] = append(h[id], t.Name)
	}
}

// of returns the clusters that a claim is placed in; none where that is not known.
func (h holders) of(claim types.NamespacedName, reach map[inventory.ID]*reach) []string {
	id := inventory.ID{Namespace: claim.Namespace, Name: claim.Name, GroupKind: volumes.Kind()}
	if placed := reach[id]; placed != nil {
		return placed.clusters
	}
	return h[id]
}

// Claims returns the claims that stay in clusters and are not of the namespace that a status is about, sorted: what is said of
// them depends on where their templates are placed.
func Claims(s *Survey) []types.NamespacedName {
	var out []types.NamespacedName
	for _, c := range s.asides.passed.clusters {
		out = append(out, slices.DeleteFunc(volumes.StayingIn(c), func(claim types.NamespacedName) bool {
			return s.counts(inventory.ID{Namespace: claim.Namespace, Name: claim.Name, GroupKind: volumes.Kind()})
		})...)
	}
	slices.SortFunc(out, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
