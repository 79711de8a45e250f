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

// InsufficientStorage is the reason of refusals for want of room.
const InsufficientStorage metav1.StatusReason = "InsufficientStorage"

// Storage refuses writes before the store meets a disk that is full, which would end
// the process. Deletions, and writes to what is being deleted, make room and go on,
// as do Leases, by which the fleet knows who lives, until nothing is left at all.
type Storage struct {
	*admission.Handler
	state func() disk.State
}

var _ admission.MutationInterface = (*Storage)(nil)

// NewStorage returns the plugin. state says how much may be stored right now.
func NewStorage(state func() disk.State) *Storage {
	return &Storage{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), state: state}
}

// Admit refuses what there is no room for. It changes nothing.
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

// isAnswered reports whether what is made is an answer, and not stored.
func isAnswered(a admission.Attributes) bool {
	group := a.GetResource().Group
	return group == authenticationv1.GroupName || group == authorizationv1.GroupName || a.GetSubresource() == "token"
}

// goesOn reports whether a write goes on while the last room is kept for it.
func goesOn(a admission.Attributes) bool {
	if a.GetOperation() == admission.Delete || a.GetResource().Group == coordinationv1.GroupName {
		return true
	}
	old, ok := a.GetOldObject().(metav1.Object)
	return ok && old.GetDeletionTimestamp() != nil
}

// changesNothing reports whether an object is written as it is, which the store leaves
// out. So does who starts, and makes sure of what must be there.
func changesNothing(a admission.Attributes) bool {
	return a.GetOperation() == admission.Update && apiequality.Semantic.DeepEqual(a.GetObject(), a.GetOldObject())
}
