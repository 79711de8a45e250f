package nodes

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/estimate"
)

// Node is what counts of a node. It must not change once an Index has it.
type Node struct {
	Name   string
	Labels map[string]string
	// Taints that keep pods away, the one of an unschedulable node included; see
	// TaintsOf.
	Taints []corev1.Taint
	// Allocatable is what it offers, pods included.
	Allocatable Amounts
}

// Pod is what counts of a pod. It must not change once an Index has it.
type Pod struct {
	Namespace, Name string
	// Node that it is bound to; empty: none yet.
	Node string
	// Over says that it has succeeded or failed, and takes nothing any more.
	Over bool
	// Requests without the pod itself.
	Requests Amounts
	// Owner is its controller; zero: it has none.
	Owner Owner
	// Created is when it was made.
	Created time.Time
	// Waits is since when the scheduler of the cluster has found no node for it; zero:
	// it has one, or was not looked at.
	Waits time.Time
}

// Owner is the controller of a pod.
type Owner struct {
	APIVersion, Kind, Name string
	// Template is the value of the pod's label that distinguishes the ReplicaSets of one
	// workload apart; empty where it has none.
	Template string
}

// Amounts of resources, each of which is listed once, in the units of
// estimate.Amount; none is negative.
type Amounts []AmountOf

// AmountOf is how much of one resource.
type AmountOf struct {
	Name corev1.ResourceName
	N    int64
}

// Largest is what an amount is at most: a PiB, and more cores than there are. What a
// cluster says above that is no size of a node.
const Largest = 1 << 50

// AmountsOf returns the amounts of a list, sorted by name. What is negative counts as
// nothing.
func AmountsOf(list corev1.ResourceList) Amounts {
	out := make(Amounts, 0, len(list))
	for name, q := range list {
		out = append(out, AmountOf{name, min(max(estimate.Amount(name, &q), 0), Largest)})
	}
	slices.SortFunc(out, byResource)
	return out
}

func byResource(a, b AmountOf) int { return cmp.Compare(a.Name, b.Name) }

// TaintsOf returns the taints that keep pods off a node: those that are not mere
// preferences, and the one that an unschedulable node has before its cluster says so.
func TaintsOf(spec *corev1.NodeSpec) []corev1.Taint {
	var out []corev1.Taint
	cordoned := false
	for _, t := range spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
			cordoned = cordoned || t.Key == corev1.TaintNodeUnschedulable
		}
	}
	if spec.Unschedulable && !cordoned {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// bounded returns n as an answer: not negative, and MaxInt32 for all that is more.
func bounded(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }
