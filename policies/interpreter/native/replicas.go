package native

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podresources "k8s.io/component-helpers/resource"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// count returns a number of replicas, and an error where it is none.
func count(m map[string]any, path ...string) (int32, error) {
	n := number(m, path...)
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%v is no number of replicas: %d", path, n)
	}
	return int32(n), nil
}

func specReplicas(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, err := count(obj.Object, "spec", "replicas")
	if err != nil {
		return 0, nil, err
	}
	req, err := templateRequirements(obj)
	return n, req, err
}

// jobReplicas is how many pods of a job run at once.
func jobReplicas(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	n, err := count(obj.Object, "spec", "parallelism")
	if err != nil {
		return 0, nil, err
	}
	if value(obj.Object, "spec", "completions") != nil {
		completions, err := count(obj.Object, "spec", "completions")
		if err != nil {
			return 0, nil, err
		}
		n = min(n, completions)
	}
	req, err := templateRequirements(obj)
	return n, req, err
}

func podReplicas(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
	req, err := requirements(obj, object(obj.Object, "spec"))
	return 1, req, err
}

func templateRequirements(obj kinds.Object) (*workv1alpha2.ReplicaRequirements, error) {
	return requirements(obj, object(obj.Object, "spec", "template", "spec"))
}

// requirements returns what one pod of the spec asks for; nil for nothing.
func requirements(obj kinds.Object, podSpec map[string]any) (*workv1alpha2.ReplicaRequirements, error) {
	spec, err := typed[corev1.PodSpec](podSpec)
	if err != nil {
		return nil, fmt.Errorf("pod spec: %w", err)
	}
	claim := nodeClaim(spec)
	request := podresources.PodRequests(&corev1.Pod{Spec: *spec}, podresources.PodResourcesOptions{})
	if claim == nil && len(request) == 0 {
		return nil, nil
	}
	if len(request) == 0 {
		request = nil
	}
	return &workv1alpha2.ReplicaRequirements{NodeClaim: claim, ResourceRequest: request, Namespace: obj.GetNamespace()}, nil
}

func nodeClaim(spec *corev1.PodSpec) *workv1alpha2.NodeClaim {
	claim := &workv1alpha2.NodeClaim{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		claim.HardNodeAffinity = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if claim.HardNodeAffinity == nil && len(claim.NodeSelector) == 0 && len(claim.Tolerations) == 0 {
		return nil
	}
	return claim
}

// reviseAt sets the number at the path, if there is one.
func reviseAt(path ...string) func(kinds.Object, int32) (kinds.Object, error) {
	return func(obj kinds.Object, n int32) (kinds.Object, error) {
		if value(obj.Object, path...) == nil {
			return obj, nil
		}
		out := obj.DeepCopy()
		err := unstructured.SetNestedField(out.Object, int64(n), path...)
		return out, err
	}
}
