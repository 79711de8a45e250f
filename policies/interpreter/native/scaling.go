package native

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// budgetConditions are wanted to be False so that a budget allows disruptions as
// soon as it does in any cluster, as its count disruptionsAllowed does.
var budgetConditions = []rules.Merge{{Type: policyv1.DisruptionAllowedCondition, Wanted: corev1.ConditionFalse}}

func disruptionBudget() kinds.Rules {
	counts := []string{"disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy"}
	return kinds.Rules{
		Reflect:   rules.WithConditions(rules.ReflectTracked(append(counts, "disruptedPods")...), budgetConditions...),
		Health:    budgetHealthy,
		Aggregate: rules.Aggregate(rules.Sum(counts...), disruptedPods, rules.Observe, rules.Conditions(budgetConditions...)),
	}
}

func budgetHealthy(obj kinds.Object) (bool, error) {
	return rules.Number(obj.Object, "status", "currentHealthy") >= rules.Number(obj.Object, "status", "desiredHealthy"), nil
}

// disruptedPods lists the disrupted pods of all clusters, each by its cluster and
// name.
func disruptedPods(status map[string]any, r rules.Reports) {
	all := map[string]any{}
	for _, p := range r.Parts {
		disrupted := rules.Object(p.Status, "disruptedPods")
		for pod := range disrupted {
			if at := rules.Time(disrupted, pod); at != "" {
				all[p.Cluster+"/"+pod] = at
			}
		}
	}
	delete(status, "disruptedPods")
	if len(all) > 0 {
		status["disruptedPods"] = all
	}
}

// autoscalerConditions are quiet, as an autoscaler changes their reasons at every
// look.
var autoscalerConditions = []rules.Merge{
	{Type: string(autoscalingv2.AbleToScale), Quiet: true},
	{Type: string(autoscalingv2.ScalingActive), Quiet: true},
	{Type: string(autoscalingv2.ScalingLimited), Quiet: true, Wanted: corev1.ConditionFalse},
}

func autoscaler() kinds.Rules {
	counts := []string{"currentReplicas", "desiredReplicas"}
	return kinds.Rules{
		Reflect:   rules.WithConditions(rules.ReflectTracked(counts...), autoscalerConditions...),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Observe, rules.Conditions(autoscalerConditions...)),
	}
}
