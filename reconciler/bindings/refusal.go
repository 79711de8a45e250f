package bindings

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// RefusalOf returns the reason and the message for users where err is the
// server's considered no to a placement: a quota, or a rule of admission.
func RefusalOf(err error) (reason, message string, refused bool) {
	var status apierrors.APIStatus
	switch {
	case err == nil || IsStale(err) || !errors.As(err, &status):
		return "", "", false
	case apierrors.ReasonForError(err) == workv1alpha2.BindingReasonQuotaExceeded:
		return workv1alpha2.BindingReasonQuotaExceeded, status.Status().Message, true
	case IsRefused(err):
		return workv1alpha2.BindingReasonSchedulerError, status.Status().Message, true
	default:
		return "", "", false
	}
}
