package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podresources "k8s.io/component-helpers/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Count returns the number of replicas at the path; zero where there is none, and
// an error where it is negative or too large.
func Count(m map[string]any, path ...string) (int32, error) {
	n := Number(m, path...)
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s is no number of replicas: %d", strings.Join(path, "."), n)
	}
	return int32(n), nil
}

// Replicas returns a rule for kinds with the number of replicas at path and the
// pod template at template; nil means that the replicas request nothing.
func Replicas(path, template []string) func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	return func(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
		n, err := Count(obj.Object, path...)
		if err != nil || template == nil {
			return n, nil, err
		}
		req, err := templateRequirements(obj, template...)
		return n, req, err
	}
}

// templateRequirements returns what one pod made from the template at the path
// requests; nil for nothing.
func templateRequirements(obj kinds.Object, path ...string) (*workv1alpha2.ReplicaRequirements, error) {
	return Requirements(obj.GetNamespace(), Object(Object(obj.Object, path...), "spec"))
}

// Requirements returns what one pod of the spec requests, and which nodes it may
// run on; nil for nothing.
func Requirements(namespace string, podSpec map[string]any) (*workv1alpha2.ReplicaRequirements, error) {
	spec, err := Typed[corev1.PodSpec](podSpec)
	if err != nil {
		return nil, fmt.Errorf("pod spec: %w", err)
	}
	claim := nodeClaim(spec)
	limitsAsRequests(spec)
	request := podresources.PodRequests(&corev1.Pod{Spec: *spec}, podresources.PodResourcesOptions{})
	if claim == nil && len(request) == 0 {
		return nil, nil
	}
	if len(request) == 0 {
		request = nil
	}
	return &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request, Namespace: namespace}, nil
}

// limitsAsRequests sets the requests of each container to its limits where it has
// no requests, as the API server of a member does when the Pod is created.
func limitsAsRequests(spec *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = filled(containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		spec.Resources.Requests = filled(spec.Resources.Requests, spec.Resources.Limits)
	}
}

// filled adds the limits to requests for resources that have no request.
func filled(requests, limits corev1.ResourceList) corev1.ResourceList {
	for name, limit := range limits {
		if _, says := requests[name]; says {
			continue
		}
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		requests[name] = limit
	}
	return requests
}

func nodeClaim(spec *corev1.PodSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if AllowsAnyNode(claim) {
		return nil
	}
	return claim
}

// AllowsAnyNode reports whether a pod with the claim may run on any node, so that
// the claim can be left out.
func AllowsAnyNode(claim *workv1alpha2.NodeClaim) bool {
	return (claim.HardNodeAffinity == nil || len(claim.HardNodeAffinity.NodeSelectorTerms) == 0) &&
		len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0
}

// ReviseAt returns a rule that sets the number at the path; an object without one
// is returned as it is.
func ReviseAt(path ...string) func(kinds.Object, int32) (kinds.Object, error) {
	return func(obj kinds.Object, n int32) (kinds.Object, error) {
		if Value(obj.Object, path...) == nil {
			return obj, nil
		}
		out := obj.DeepCopy()
		err := unstructured.SetNestedField(out.Object, int64(n), path...)
		return out, err
	}
}

// Product multiplies numbers of pods. Where one of them is no valid number of
// replicas, the result is negative, and so not valid either.
func Product(a, b int64) int64 {
	if a < 0 || b < 0 || a > math.MaxInt32 || b > math.MaxInt32 {
		return min(a, b, -1)
	}
	return a * b
}

// Share returns v where it is a number, and where it is a percentage, that share
// of of, rounded up. As in Kubernetes, a text needs the percent sign; zero where
// it is no percentage between 0% and 100%.
func Share(v any, of int64) int64 {
	text, ok := v.(string)
	if !ok {
		return Number(map[string]any{"n": v}, "n")
	}
	digits, signed := strings.CutSuffix(text, "%")
	percent, err := strconv.ParseInt(digits, 10, 32)
	if !signed || err != nil || percent < 0 || percent > 100 {
		return 0
	}
	of = min(max(of, 0), math.MaxInt32)
	return (of*percent + 99) / 100
}
