// Package quota says what bindings use of the resources of all clusters
// together, and whether a FederatedResourceQuota allows more.
//
// In go bindings and quotas; out come amounts, or an error that says which limit
// would be exceeded and by what. The package counts what it is given and keeps no
// counter.
package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Usage is what a binding uses in all of its clusters: what the replicas placed
// there request, or, of a workload of several components, what one set of them
// requests, for each cluster. It is empty for a binding that is placed nowhere or
// requests nothing.
func Usage(spec *workv1alpha2.ResourceBindingSpec) corev1.ResourceList {
	out := corev1.ResourceList{}
	if len(spec.Components) > 0 {
		for i := range spec.Components {
			c := &spec.Components[i]
			if c.ReplicaRequirements != nil {
				addTimes(out, c.ReplicaRequirements.ResourceRequest, int64(max(c.Replicas, 0))*int64(len(spec.Clusters)))
			}
		}
		return out
	}
	if spec.ReplicaRequirements == nil {
		return out
	}
	var placed int64
	for i := range spec.Clusters {
		placed += int64(max(spec.Clusters[i].Replicas, 0))
	}
	addTimes(out, spec.ReplicaRequirements.ResourceRequest, placed)
	return out
}

// addTimes adds amounts n times. What is requested below zero is requested not
// at all.
func addTimes(to, amounts corev1.ResourceList, n int64) {
	if n == 0 {
		return
	}
	for name, q := range amounts {
		if q.Sign() <= 0 {
			continue
		}
		product := q.DeepCopy()
		product.Mul(n)
		sum := to[name]
		sum.Add(product)
		to[name] = sum
	}
}

// Add adds amounts to a list.
func Add(to, amounts corev1.ResourceList) { addTimes(to, amounts, 1) }

// Growth is by how much now is more than before, of each resource of which it is
// more. It is empty if nothing grows.
func Growth(before, now corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range now {
		grown := q.DeepCopy()
		grown.Sub(before[name])
		if grown.Sign() > 0 {
			out[name] = grown
		}
	}
	return out
}

// Most is for each resource the larger of two amounts.
func Most(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, q := range list {
			if have, known := out[name]; !known || have.Cmp(q) < 0 {
				out[name] = q.DeepCopy() // large amounts are pointers, which sums write to
			}
		}
	}
	return out
}

// requests begins the names by which ResourceQuotas limit what Pods request.
const requests = "requests."

// objects are what Objects returns.
var objects = []string{
	"pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
	"services.nodeports", "services.loadbalancers",
}

// Objects are the resources of a ResourceQuota that are numbers of objects, besides those that begin with "count/".
func Objects() []string { return slices.Clone(objects) }

// ofStorageClass is in the names of what volumes of one storage class ask for.
const ofStorageClass = ".storageclass.storage.k8s.io/"

// Counted is the name by which Pods request what a limit is on, and false for limits against
// which nothing counts, because bindings do not say it: what Pods are limited to, the
// storage of volumes, and how many objects there are. "requests.cpu" and "cpu" are one thing, as in ResourceQuotas.
func Counted(limit corev1.ResourceName) (corev1.ResourceName, bool) {
	name, is := strings.CutPrefix(string(limit), requests)
	switch {
	case corev1.ResourceName(name) == corev1.ResourceStorage, !is && strings.HasPrefix(name, "limits."):
		return "", false
	case !is && (slices.Contains(objects, name) || strings.HasPrefix(name, "count/")), strings.Contains(name, ofStorageClass):
		return "", false
	default:
		return corev1.ResourceName(name), true
	}
}

// Of keeps the amounts that a quota limits, without those of which nothing is used: who waits for
// the figures of Karmada compares all of them. It is nil where nothing is.
func Of(q *policyv1alpha1.FederatedResourceQuota, used corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name := range q.Spec.Overall {
		amount, known := amountOf(used, name)
		if !known || amount.IsZero() {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = amount.DeepCopy()
	}
	return out
}

// amountOf is that of what a limit is on, and false where there is none.
func amountOf(amounts corev1.ResourceList, limit corev1.ResourceName) (resource.Quantity, bool) {
	name, counts := countedInShare(limit)
	amount, known := amounts[name]
	return amount, counts && known
}

// countedInShare is Counted for the share of one cluster, where a ResourceQuota counts Pods: who knows how many are
// asked for there says so.
func countedInShare(limit corev1.ResourceName) (corev1.ResourceName, bool) {
	if limit == corev1.ResourcePods {
		return limit, true
	}
	return Counted(limit)
}

// Concerns reports whether a quota limits any of the resources.
func Concerns(q *policyv1alpha1.FederatedResourceQuota, amounts corev1.ResourceList) bool {
	for limit := range q.Spec.Overall {
		if _, asked := amountOf(amounts, limit); asked {
			return true
		}
	}
	return false
}

// ExceededError says that a quota does not allow what is asked for.
type ExceededError struct {
	// Namespace and Name are the quota's.
	Namespace, Name string
	// Cluster is the one whose share of the quota it is; empty for all of it.
	Cluster string
	// Excesses are the resources of which there is not enough, by name.
	Excesses []Excess
}

// An Excess is a resource of which there is not enough.
type Excess struct {
	// Resource is its name, as the quota has it.
	Resource corev1.ResourceName
	// Used is in use, Asked is asked for in addition, Limit is allowed.
	Used, Asked, Limit resource.Quantity
}

// Error names the quota and all its resources that are exceeded.
func (e *ExceededError) Error() string {
	parts := make([]string, 0, len(e.Excesses))
	for _, x := range e.Excesses {
		parts = append(parts, fmt.Sprintf("%s: %s of %s are used, %s more are asked for", x.Resource, x.Used.String(), x.Limit.String(), x.Asked.String()))
	}
	whose := ""
	if e.Cluster != "" {
		whose = "the share of " + e.Cluster + " of "
	}
	return fmt.Sprintf("%sFederatedResourceQuota %s/%s is exceeded: %s", whose, e.Namespace, e.Name, strings.Join(parts, "; "))
}

// Check reports whether a quota of which some is used allows delta in addition. What
// does not grow is always allowed, also where more is used than allowed already.
//
// Errors: *ExceededError.
func Check(q *policyv1alpha1.FederatedResourceQuota, used, delta corev1.ResourceList) error {
	if over := excesses(q.Spec.Overall, used, delta); len(over) > 0 {
		return &ExceededError{Namespace: q.Namespace, Name: q.Name, Excesses: over}
	}
	return nil
}

// excesses are the limits that what is used and delta together exceed, by name, of what grows.
func excesses(limits, used, delta corev1.ResourceList) []Excess {
	var out []Excess
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		asked, grows := amountOf(delta, name)
		if !grows || asked.Sign() <= 0 {
			continue
		}
		limit := limits[name]
		before, _ := amountOf(used, name)
		sum := before.DeepCopy()
		sum.Add(asked)
		if sum.Cmp(limit) > 0 {
			out = append(out, Excess{Resource: name, Used: before, Asked: asked, Limit: limit})
		}
	}
	return out
}
