package join

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/claims"
	"github.com/flotilla-io/flotilla/policies/orphans"
)

// Stays names what a hub with this identity had a cluster run that config leads to, and
// what is there still, as far as it says itself: "Deployment shop/web", and what is being deleted
// with what keeps it. all is false where kinds could not be listed.
func Stays(ctx context.Context, config *rest.Config, cluster, hub string) (titles []string, all bool, err error) {
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
	seen := map[types.UID]bool{}
	unread, err := Managed(ctx, quiet, func(at Served, obj *metav1.PartialObjectMetadata) {
		notes, labels := obj.Annotations, obj.Labels
		is := orphans.Object{
			ID:      orphans.ID{Kind: at.Kind, NamespacedName: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}},
			Work:    types.NamespacedName{Namespace: notes[workv1alpha2.WorkNamespaceAnnotation], Name: notes[workv1alpha2.WorkNameAnnotation]},
			Claim:   claims.Marks{Hub: notes[workv1alpha2.HubAnnotation], Work: labels[workv1alpha2.WorkPermanentIDLabel]},
			Managed: true, Applied: true, Leaving: !obj.DeletionTimestamp.IsZero(),
		}
		if !seen[obj.UID] && metav1.GetControllerOf(obj) == nil && is.Suspect(cluster, claims.Standing{Hub: hub}) {
			seen[obj.UID] = true
			title := is.ID.String()
			if is.Leaving {
				title += " (" + orphans.Deleting(obj.Finalizers) + ")"
			}
			titles = append(titles, title)
		}
	})
	slices.Sort(titles)
	return titles, len(unread) == 0, err
}
