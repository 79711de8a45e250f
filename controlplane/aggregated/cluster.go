package aggregated

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// clusterResource is the resource of Clusters.
var clusterResource = clusterv1alpha1.Resource(clusterv1alpha1.ResourcePluralCluster)

// Cluster returns a Cluster from the server's cache, and reads from the store only if the
// cache has none. The caller must not change it. If there is no such Cluster,
// apierrors.IsNotFound reports true for the error.
func (k *Kinds) Cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	found, err := remembered[*clusterv1alpha1.Cluster](ctx, k.stores[clusterResource], name)
	if apierrors.IsNotFound(err) {
		return readFrom[*clusterv1alpha1.Cluster](ctx, k.stores[clusterResource], name, &metav1.GetOptions{})
	}
	return found, err
}

// ClusterNames returns the names of all Clusters in the server's cache.
func (k *Kinds) ClusterNames(ctx context.Context) ([]string, error) {
	store := k.stores[clusterResource]
	if store == nil {
		return nil, apierrors.NewServiceUnavailable("clusters are not served yet")
	}
	found, err := store.List(ctx, &metainternalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	list, ok := found.(*clusterv1alpha1.ClusterList)
	if !ok {
		return nil, fmt.Errorf("the store of clusters lists a %T", found)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// Work returns a Work from the server's cache. The caller must not change it.
func (k *Kinds) Work(ctx context.Context, namespace, name string) (*workv1alpha1.Work, error) {
	return remembered[*workv1alpha1.Work](genericapirequest.WithNamespace(ctx, namespace), k.stores[workResource], name)
}

// remembered returns an object from the server's cache, whatever its version.
func remembered[P object](ctx context.Context, store *genericregistry.Store, name string) (P, error) {
	const cached = "0"
	return readFrom[P](ctx, store, name, &metav1.GetOptions{ResourceVersion: cached})
}

func readFrom[P object](ctx context.Context, store *genericregistry.Store, name string, options *metav1.GetOptions) (none P, err error) {
	if store == nil {
		return none, apierrors.NewServiceUnavailable("the kind is not served yet")
	}
	found, err := store.Get(ctx, name, options)
	if err != nil {
		return none, err
	}
	obj, ok := found.(P)
	if !ok {
		return none, fmt.Errorf("the store holds a %T", found)
	}
	return obj, nil
}

// clusters returns the kind Cluster. now returns the time to record for new taints that
// evict. The status, which a loop writes, is not checked.
func clusters(now func() time.Time) kind[*clusterv1alpha1.Cluster] {
	return kind[*clusterv1alpha1.Cluster]{
		names: names{
			resource: clusterResource, singular: clusterv1alpha1.Resource("cluster"),
		},
		versions:  []schema.GroupVersion{clusterv1alpha1.GroupVersion},
		newObject: func() *clusterv1alpha1.Cluster { return &clusterv1alpha1.Cluster{} },
		newList:   func() runtime.Object { return &clusterv1alpha1.ClusterList{} },
		complete: func(c, old *clusterv1alpha1.Cluster) {
			validate.DefaultCluster(c, old == nil, now())
		},
		check:       validate.Cluster,
		checkSpec:   func(*clusterv1alpha1.Cluster) field.ErrorList { return nil },
		checkStatus: func(*clusterv1alpha1.Cluster) field.ErrorList { return nil },
		sameSpec: func(a, b *clusterv1alpha1.Cluster) bool {
			return apiequality.Semantic.DeepEqual(a.Spec, b.Spec)
		},
		keepStatus: func(c, old *clusterv1alpha1.Cluster) { c.Status = old.Status },
		keepSpec: func(c, old *clusterv1alpha1.Cluster) {
			keepMeta(&c.ObjectMeta, &old.ObjectMeta)
			c.Spec = old.Spec
		},
		tables: map[schema.GroupVersion]rest.TableConvertor{clusterv1alpha1.GroupVersion: table{}},
	}
}
