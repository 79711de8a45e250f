// Package order is the order in which objects are applied.
//
// In go two objects; out comes which of them is first. It knows kinds by their names, and looks at no field but those that
// say what an object is called.
package order

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ranks is the order in which kinds are applied: those that others need come
// first, and policies before the templates that they place. Kinds that are not
// listed come after those that are, and webhooks last.
var ranks = rank(
	"Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
	"ResourceQuota", "LimitRange", "StorageClass", "PriorityClass", "RuntimeClass", "IngressClass",
	"ResourceInterpreterCustomization", "ClusterOverridePolicy", "OverridePolicy", "ClusterPropagationPolicy", "PropagationPolicy",
	"ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim", "Service",
	"DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Pod", "Job", "CronJob",
	"HorizontalPodAutoscaler", "PodDisruptionBudget", "Ingress", "NetworkPolicy", "APIService",
)

var lastRanks = map[string]int{
	"ValidatingWebhookConfiguration": 1, "MutatingWebhookConfiguration": 1,
	"ValidatingAdmissionPolicy": 1, "ValidatingAdmissionPolicyBinding": 1,
}

func rank(kinds ...string) map[string]int {
	out := make(map[string]int, len(kinds))
	for n, kind := range kinds {
		out[kind] = n
	}
	return out
}

func rankOf(kind string) int {
	if n, ok := ranks[kind]; ok {
		return n
	}
	return len(ranks) + lastRanks[kind]
}

// Compare says which of two objects is applied first, as slices.SortFunc asks.
func Compare(a, b *unstructured.Unstructured) int {
	if d := rankOf(a.GetKind()) - rankOf(b.GetKind()); d != 0 {
		return d
	}
	return strings.Compare(key(a), key(b))
}

func key(o *unstructured.Unstructured) string {
	gk := o.GroupVersionKind().GroupKind()
	return strings.Join([]string{gk.Kind, gk.Group, o.GetNamespace(), o.GetName()}, "\x00")
}
