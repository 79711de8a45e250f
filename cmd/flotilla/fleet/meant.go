package fleet

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// mostRead is how many objects are read to find out which one is meant.
const mostRead = 5000

// Meant asks which object of the control plane is meant by a name that none has: " (did you mean
// web?)". It is empty where none is near, and where the caller may not list them.
func Meant(ctx context.Context, hub client.Reader, kind schema.GroupVersionKind, key client.ObjectKey) string {
	known := keys(ctx, hub, kind, client.InNamespace(key.Namespace), client.Limit(mostRead))
	if key.Namespace != "" {
		known = append(known, keys(ctx, hub, kind, client.MatchingFields{"metadata.name": key.Name}, client.Limit(mostRead))...)
	}
	return propagation.HintAmong(key, known)
}

// keys lists objects by their metadata; nothing where that is refused.
func keys(ctx context.Context, hub client.Reader, kind schema.GroupVersionKind, opts ...client.ListOption) []client.ObjectKey {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := hub.List(ctx, list, opts...); err != nil {
		return nil
	}
	out := make([]client.ObjectKey, len(list.Items))
	for i := range list.Items {
		out[i] = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

// NoCluster says that the fleet has no cluster of a name, and which is meant.
func NoCluster(ctx context.Context, hub client.Reader, name string) error {
	return noCluster(name, Meant(ctx, hub, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster), client.ObjectKey{Name: name}))
}

// NoClusterAmong is NoCluster where the names of the fleet are known.
func NoClusterAmong(name string, clusters []string) error {
	return noCluster(name, propagation.Hint(name, clusters))
}

func noCluster(name, hint string) error {
	return fmt.Errorf("there is no cluster %s%s: flotilla get clusters lists them", name, hint)
}
