package admission

import (
	"context"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/flotilla-io/flotilla/controlplane/disk"
)

// InsufficientStorage is the reason of refusals for lack of disk space.
const InsufficientStorage metav1.StatusReason = "InsufficientStorage"

// Storage refuses writes before the disk of the store is full, which would end the process.
// Deletions, and writes to objects that are being deleted, free space and stay allowed
// until no space is left at all, and so do Leases, by which the fleet knows who is alive.
type Storage struct {
	*admission.Handler
	state func() disk.State
}

var _ admission.MutationInterface = (*Storage)(nil)

// NewStorage returns the plugin. state returns how much may be stored right now.
func NewStorage(state func() disk.State) *Storage {
	return &Storage{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), state: state}
}

// Admit refuses writes for which there is no space. It changes no object.
func (r *Storage) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.IsDryRun() || isAnswered(a) {
		return nil
	}
	state := r.state()
	switch {
	case state.Level == disk.Plenty, state.Level == disk.Low && goesOn(a), changesNothing(a):
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: InsufficientStorage, Message: state.Text,
	}}
}

// isAnswered reports whether an object is only answered, as a review is, and not stored.
func isAnswered(a admission.Attributes) bool {
	group := a.GetResource().Group
	return group == authenticationv1.GroupName || group == authorizationv1.GroupName || a.GetSubresource() == "token"
}

// goesOn reports whether a write is allowed while space is low.
func goesOn(a admission.Attributes) bool {
	if a.GetOperation() == admission.Delete || a.GetResource().Group == coordinationv1.GroupName {
		return true
	}
	old, ok := a.GetOldObject().(metav1.Object)
	return ok && old.GetDeletionTimestamp() != nil
}

// changesNothing reports whether an update leaves an object as it is, which the store does
// not write. Components that ensure their objects at start make such updates.
func changesNothing(a admission.Attributes) bool {
	return a.GetOperation() == admission.Update && apiequality.Semantic.DeepEqual(a.GetObject(), a.GetOldObject())
}
