package native

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// settled says whether the object's controller has seen its latest spec.
func settled(obj kinds.Object) bool {
	return number(obj.Object, "status", "observedGeneration") == obj.GetGeneration()
}

// rolledOut says whether all replicas are of the latest template and available.
func rolledOut(obj kinds.Object) (bool, error) {
	updated := number(obj.Object, "status", "updatedReplicas")
	return settled(obj) && updated >= number(obj.Object, "spec", "replicas") &&
		number(obj.Object, "status", "availableReplicas") >= updated, nil
}

func replicaSetHealthy(obj kinds.Object) (bool, error) {
	return settled(obj) &&
		number(obj.Object, "status", "availableReplicas") >= number(obj.Object, "spec", "replicas"), nil
}

func daemonSetHealthy(obj kinds.Object) (bool, error) {
	updated := number(obj.Object, "status", "updatedNumberScheduled")
	return settled(obj) && updated >= number(obj.Object, "status", "desiredNumberScheduled") &&
		number(obj.Object, "status", "numberAvailable") >= updated, nil
}

// serviceHealthy says whether a load balancer has an address; other services
// need none.
func serviceHealthy(obj kinds.Object) (bool, error) {
	if text(obj.Object, "spec", "type") != string(corev1.ServiceTypeLoadBalancer) {
		return true, nil
	}
	return hasAddress(obj)
}

func hasAddress(obj kinds.Object) (bool, error) {
	for _, entry := range list(obj.Object, "status", "loadBalancer", "ingress") {
		if m, ok := entry.(map[string]any); ok && (text(m, "ip") != "" || text(m, "hostname") != "") {
			return true, nil
		}
	}
	return false, nil
}

func claimHealthy(obj kinds.Object) (bool, error) {
	return text(obj.Object, "status", "phase") == string(corev1.ClaimBound), nil
}

func podHealthy(obj kinds.Object) (bool, error) {
	switch corev1.PodPhase(text(obj.Object, "status", "phase")) {
	case corev1.PodSucceeded:
		return true, nil
	case corev1.PodRunning:
		return conditionTrue(list(obj.Object, "status", "conditions"), string(corev1.PodReady)), nil
	default:
		return false, nil
	}
}

func budgetHealthy(obj kinds.Object) (bool, error) {
	return number(obj.Object, "status", "currentHealthy") >= number(obj.Object, "status", "desiredHealthy"), nil
}

func conditionTrue(conditions []any, kind string) bool {
	c := condition(conditions, kind)
	return c != nil && text(c, "status") == string(corev1.ConditionTrue)
}

func condition(conditions []any, kind string) map[string]any {
	for _, entry := range conditions {
		if c, ok := entry.(map[string]any); ok && text(c, "type") == kind {
			return c
		}
	}
	return nil
}
