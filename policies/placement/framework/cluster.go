package framework

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/estimate"
)

// Cluster is a member as plugins see it: read only, prepared once per
// snapshot.
type Cluster struct {
	// Object must not be changed.
	*clusterv1alpha1.Cluster
	// Free is what it reports to be free.
	Free estimate.Capacity
	// Reserved is what was placed here lately and what the cluster does not
	// report yet; nil where there is nothing.
	Reserved *estimate.Load
	// Barring are the taints that keep away what does not tolerate them.
	Barring []Taint
	// APIsComplete says that Status.APIEnablements lists every API.
	APIsComplete bool
	// Arriving is the kind whose definition is on its way here: it counts as
	// served. Empty for none.
	Arriving schema.GroupVersionKind
}

// Taint is a taint with the text that refusals show.
type Taint struct {
	corev1.Taint
	Reason string
}

// NewCluster prepares c.
func NewCluster(c *clusterv1alpha1.Cluster) *Cluster {
	out := &Cluster{
		Cluster:      c,
		Free:         estimate.NewCapacity(c),
		APIsComplete: meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements),
	}
	for _, t := range c.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			out.Barring = append(out.Barring, Taint{t, fmt.Sprintf("cluster(s) had untolerated taint {%s}", t.ToString())})
		}
	}
	return out
}

// API reports whether c serves the kind, or is about to.
func (c *Cluster) API(apiVersion, kind string) clusterv1alpha1.APIEnablementStatus {
	for i := range c.Status.APIEnablements {
		group := &c.Status.APIEnablements[i]
		if group.GroupVersion != apiVersion {
			continue
		}
		for j := range group.Resources {
			if group.Resources[j].Kind == kind {
				return clusterv1alpha1.APIEnabled
			}
		}
	}
	if c.Arriving.Kind == kind && kind != "" && c.Arriving.GroupVersion().String() == apiVersion {
		return clusterv1alpha1.APIEnabled
	}
	if c.APIsComplete {
		return clusterv1alpha1.APIDisabled
	}
	return clusterv1alpha1.APIUnknown
}
