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

// mostRead is how many objects are read to find similar names.
const mostRead = 5000

// Meant returns a suggestion for a name that no object of the control plane has, such as " (did
// you mean web?)"; empty if no name is similar, or if the user may not list the objects.
func Meant(ctx context.Context, hub client.Reader, kind schema.GroupVersionKind, key client.ObjectKey) string {
	known := keys(ctx, hub, kind, client.InNamespace(key.Namespace), client.Limit(mostRead))
	if key.Namespace != "" {
		known = append(known, keys(ctx, hub, kind, client.MatchingFields{"metadata.name": key.Name}, client.Limit(mostRead))...)
	}
	return propagation.HintAmong(key, known)
}

// keys returns the keys of objects; nil if the list fails.
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

// NoCluster returns an error that the fleet has no cluster of a name, with a similar name.
func NoCluster(ctx context.Context, hub client.Reader, name string) error {
	return noCluster(name, Meant(ctx, hub, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster), client.ObjectKey{Name: name}))
}

// clusterKind is the kind Cluster, as Absent returns it.
const clusterKind = "clusters." + clusterv1alpha1.GroupName

// MissingCluster returns NoCluster for an error that the control plane has no Cluster of a name, and
// other errors, and nil, unchanged.
func MissingCluster(ctx context.Context, f *Flags, err error) error {
	if Absent(err) != clusterKind {
		return err
	}
	hub, failed := f.Client()
	if failed != nil {
		return err
	}
	return NoCluster(ctx, hub, statusOf(err).Details.Name)
}

// NoClusterAmong is NoCluster for callers that know the names of the clusters.
func NoClusterAmong(name string, clusters []string) error {
	return noCluster(name, propagation.Hint(name, clusters))
}

func noCluster(name, hint string) error {
	return fmt.Errorf("there is no cluster %s%s: flotilla get clusters lists them", name, hint)
}
