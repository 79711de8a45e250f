package inventory

import (
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Place is where the objects of an inventory are. The zero value is the control plane.
type Place struct {
	// Server is the address of the API server of a cluster outside of the fleet.
	Server string
	// Secret is the name of the Secret that leads there, in the namespace of the Kustomization.
	Secret string
}

// String returns a text such as "in the cluster of the Secret prod", or "on the control plane".
func (p Place) String() string {
	if p == (Place{}) {
		return "on the control plane"
	}
	return "in the cluster of the Secret " + p.Secret
}

// Is reports whether two places are the same cluster, whichever Secret leads there.
func (p Place) Is(other Place) bool { return p.Server == other.Server }

// PlaceOf returns where the objects in the inventory of a status are.
func PlaceOf(status kustomizev1.KustomizationStatus) Place {
	latest := status.History.Latest()
	if latest == nil {
		return Place{}
	}
	server, secret, whole := strings.Cut(latest.Metadata[gitopsv1alpha1.PlaceKey], " ")
	if !whole {
		return Place{}
	}
	return Place{Server: server, Secret: secret}
}

// RecordPlace writes into the latest outcome of a status where the objects of its inventory are. For another cluster than before
// it drops what is recorded of objects in that one. A status without any outcome cannot hold a record.
func RecordPlace(status *kustomizev1.KustomizationStatus, place Place) {
	if !PlaceOf(*status).Is(place) {
		RecordLeaving(status, nil, nil, true)
		RecordRemoved(status, nil, true)
		RecordTerminating(status, nil, true)
		RecordEdited(status, nil)
	}
	text := ""
	if place != (Place{}) {
		text = place.Server + " " + place.Secret
	}
	recordText(status, gitopsv1alpha1.PlaceKey, text, true)
}

// In returns the entries of a Kustomization's inventory that are in a place; none if the inventory is of another one.
func In(ks *kustomizev1.Kustomization, place Place) ([]Entry, error) {
	if !PlaceOf(ks.Status).Is(place) {
		return nil, nil
	}
	return Read(ks.Status.Inventory)
}

// Here returns the entries of a Kustomization's inventory that are on the control plane: none of one whose objects are in a
// cluster outside of the fleet.
func Here(ks *kustomizev1.Kustomization) ([]Entry, error) { return In(ks, Place{}) }
