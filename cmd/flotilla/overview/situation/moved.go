package situation

import (
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/policies/orphans"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// leftovers adds what clusters have that no Work names. Claims that stay where their template was moved off are as that was announced,
// and are noted; once a store was set back nobody knows.
func leftovers(s *Survey) {
	for _, c := range s.asides.passed.clusters {
		found := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound)
		if found == nil || !apimeta.IsStatusConditionTrue(c.Status.Conditions, found.Type) {
			continue
		}
		var moved []types.NamespacedName
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld) {
			moved = slices.DeleteFunc(volumes.StayingIn(c), func(claim types.NamespacedName) bool { return !movedOff(s, claim, c.Name) })
		}
		for _, claim := range moved {
			s.fleet.Notes = append(s.fleet.Notes, Note{Kind: volumes.Kind().Kind, Namespace: claim.Namespace, Name: claim.Name,
				Message: "it stays in " + c.Name + " with its data since it was moved off that", Next: "to give up its data there: flotilla prune --cluster " + c.Name + " --dry-run"})
		}
		if rest := orphans.Rest(found.Message, moved); rest != "" {
			s.problem(Problem{State: Progressing, Kind: clusterv1alpha1.ResourceKindCluster, Name: c.Name, Message: rest, Next: remark.OrphansNext(c)})
		}
	}
}

// movedOff reports whether a claim is placed in other clusters, and not in this one.
func movedOff(s *Survey, claim types.NamespacedName, cluster string) bool {
	placed := s.reach[inventory.ID{Namespace: claim.Namespace, Name: claim.Name, GroupKind: volumes.Kind()}]
	return placed != nil && len(placed.clusters) > 0 && !slices.Contains(placed.clusters, cluster)
}
