package listing

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// ClaimBindings reads the bindings of claims, one by one, without those that do not exist and those that the user may not read.
func ClaimBindings(ctx context.Context, hub client.Reader, claims []types.NamespacedName, take func(*workv1alpha2.ResourceBinding)) error {
	for _, claim := range claims {
		b := &workv1alpha2.ResourceBinding{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: workv1alpha2.BindingName(volumes.Kind().Kind, claim.Name)}, b)
		switch {
		case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		case err != nil:
			return err
		default:
			take(b)
		}
	}
	return nil
}
