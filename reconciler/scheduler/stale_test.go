package scheduler

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// stale is the server's answer to a patch whose test failed.
func stale() error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false)
}

// appliedOf is the applied-placement annotation of a binding that is placed.
func appliedOf(b workv1alpha2.Binding) string {
	return placement.AppliedPlacement(b.BindingSpec().Placement)
}
