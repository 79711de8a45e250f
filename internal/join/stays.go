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

// Remains are what is in a cluster of what a hub had it run.
type Remains struct {
	// Titles name what stays: "Deployment shop/web", and of what is being deleted what
	// keeps it.
	Titles []string
	// Going names what is being deleted and kept by nothing: it goes by itself.
	Going []string
	// All is false where kinds could not be listed.
	All bool
}

// Stays returns what a hub with this identity had a cluster run that config leads to, and
// what is there still, as far as it says itself.
func Stays(ctx context.Context, config *rest.Config, cluster, hub string) (Remains, error) {
	var out Remains
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
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
