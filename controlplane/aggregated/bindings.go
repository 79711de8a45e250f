package aggregated

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Bindings lists the ResourceBindings of a namespace from the server's own cache, at least
// as new as a version of the store; 0 means any version. The list is shared: the caller must
// not change it. It fails if the cache does not reach the version in time, or if
// ResourceBindings are not served.
func (k *Kinds) Bindings(ctx context.Context, namespace string, atLeast uint64) (*workv1alpha2.ResourceBindingList, error) {
	store := k.stores[bindingResource]
	if store == nil {
		return nil, errors.New("resourcebindings are not served")
	}
	list, err := store.List(genericapirequest.WithNamespace(ctx, namespace), &metainternalversion.ListOptions{
		ResourceVersion: strconv.FormatUint(atLeast, 10), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	bindings, ok := list.(*workv1alpha2.ResourceBindingList)
	if !ok {
		return nil, fmt.Errorf("list bindings: got %T", list)
	}
	return bindings, nil
}
