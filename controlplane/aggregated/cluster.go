package aggregated

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// clusters is the kind Cluster. now is when taints that evict were added. What a
// loop observed is not judged.
func clusters(now func() time.Time) kind[*clusterv1alpha1.Cluster] {
	return kind[*clusterv1alpha1.Cluster]{
		names: names{
			resource: clusterv1alpha1.Resource("clusters"), singular: clusterv1alpha1.Resource("cluster"),
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
		keepSpec:   func(c, old *clusterv1alpha1.Cluster) { c.Spec = old.Spec },
		tables:     map[schema.GroupVersion]rest.TableConvertor{clusterv1alpha1.GroupVersion: table{}},
	}
}
