package join

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/orphans"
)

// Remains are the objects in a cluster that a hub applied there.
type Remains struct {
	// Titles are the objects that stay, as in "Deployment shop/web"; those that
	// are being deleted have what keeps them.
	Titles []string
	// Going are those that are being deleted and that nothing keeps.
	Going []string
	// All is false where some kinds could not be listed.
	All bool
}

// Stays returns what a hub with this identity applied to the cluster that config
// leads to and that is still there, according to the objects' own metadata.
func Stays(ctx context.Context, config *rest.Config, cluster, hub string) (Remains, error) {
	var out Remains
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = rest.NoWarnings{} // some of the kinds that are listed are deprecated
	seen := map[types.UID]bool{}
	unread, err := Managed(ctx, quiet, func(at Served, obj *metav1.PartialObjectMetadata) {
		notes, labels := obj.Annotations, obj.Labels
		is := orphans.Object{
			ID:      orphans.ID{Kind: at.Kind, NamespacedName: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}},
			Work:    types.NamespacedName{Namespace: notes[workv1alpha2.WorkNamespaceAnnotation], Name: notes[workv1alpha2.WorkNameAnnotation]},
			Owner:   hubclaim.Ownership{Hub: notes[workv1alpha2.HubAnnotation], Work: labels[workv1alpha2.WorkPermanentIDLabel]},
			Managed: true, Applied: true, Leaving: !obj.DeletionTimestamp.IsZero(),
		}
		if seen[obj.UID] || metav1.GetControllerOf(obj) != nil || !is.Suspect(cluster, hubclaim.Standing{Hub: hub}) {
			return
		}
		seen[obj.UID] = true
		switch title := is.ID.String(); {
		case is.Leaving && len(obj.Finalizers) == 0:
			out.Going = append(out.Going, title)
		case is.Leaving:
			out.Titles = append(out.Titles, title+" ("+orphans.Deleting(obj.Finalizers)+")")
		default:
			out.Titles = append(out.Titles, title)
		}
	})
	slices.Sort(out.Titles)
	slices.Sort(out.Going)
	out.All = len(unread) == 0
	return out, err
}
