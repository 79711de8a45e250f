package estimate

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Load is what replicas take of a cluster: the resources that they ask for, and
// one of "pods" each. The zero value takes nothing.
type Load struct {
	Resources corev1.ResourceList
}

// LoadOf returns what n replicas take; nothing where n is not positive.
func LoadOf(n int32, req *workv1alpha2.ReplicaRequirements) Load {
	if n <= 0 {
		return Load{}
	}
	out := Load{Resources: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(n), resource.DecimalSI)}}
	if req == nil {
		return out
	}
	for name, q := range req.ResourceRequest {
		if name != corev1.ResourcePods {
			all := q.DeepCopy()
			all.Mul(int64(n))
			out.Resources[name] = all
		}
	}
	return out
}

// LoadOfSet returns what one replica of a workload with several components
// takes: all replicas of each.
func LoadOfSet(components []workv1alpha2.Component) Load {
	var out Load
	for i := range components {
		c := &components[i]
		var req *workv1alpha2.ReplicaRequirements
		if c.ReplicaRequirements != nil {
			req = &workv1alpha2.ReplicaRequirements{ResourceRequest: c.ReplicaRequirements.ResourceRequest}
		}
		out = out.Plus(LoadOf(c.Replicas, req))
	}
	return out
}

// Times returns n times l, and nothing where n is not positive; l stays as it
// is.
func (l Load) Times(n int32) Load {
	if n <= 0 {
		return Load{}
	}
	out := Load{Resources: make(corev1.ResourceList, len(l.Resources))}
	for name, q := range l.Resources {
		all := q.DeepCopy()
		all.Mul(int64(n))
		out.Resources[name] = all
	}
	return out
}

// Plus returns the sum of both; neither is changed.
func (l Load) Plus(other Load) Load {
	out := Load{Resources: make(corev1.ResourceList, len(l.Resources)+len(other.Resources))}
	for name, q := range l.Resources {
		out.Resources[name] = q.DeepCopy()
	}
	for name, q := range other.Resources {
		sum := out.Resources[name]
		sum.Add(q)
		out.Resources[name] = sum
	}
	return out
}

// IsZero reports whether the load takes nothing.
func (l Load) IsZero() bool {
	for _, q := range l.Resources {
		if !q.IsZero() {
			return false
		}
	}
	return true
}

// Equal reports whether both take the same, however it is written.
func (l Load) Equal(other Load) bool {
	return maps.EqualFunc(l.Resources, other.Resources, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}
