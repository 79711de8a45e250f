package native

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// serves returns the rules for what has a cluster serve a kind or an API: it is shown as healthy once that is served, by its
// condition of that type, and is never moved, as the objects of its kind would go with it.
func serves(conditionType string) kinds.Rules {
	return kinds.Rules{
		Health: func(kinds.Object) (bool, error) { return true, nil },
		Waits: func(observed kinds.Object) bool {
			c := rules.Condition(rules.List(observed.Object, "status", "conditions"), conditionType)
			return c == nil || rules.Text(c, "status") != string(corev1.ConditionTrue)
		},
	}
}
