package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kyverno is Kyverno's policies. What a policy generates is worked out of it
// alone, so it is the same in every cluster.
func kyverno() kinds.Table {
	derived := []string{"autogen", "rulecount", "validatingadmissionpolicy"}
	policy := kinds.Rules{
		Reflect:   rules.Reflect(append(derived, "ready", "conditions")...),
		Health:    words.OneOf(words.IsTrue("Ready"), words.All(noConditions, kyvernoReady)),
		Aggregate: rules.Aggregate(rules.Everywhere("ready"), rules.EveryCondition(), rules.First(derived...)),
	}
	t := kinds.Table{}
	words.Served(t, "kyverno.io", []string{"v1", "v2beta1"}, "ClusterPolicy", policy)
	words.Served(t, "kyverno.io", []string{"v1", "v2beta1"}, "Policy", policy)
	return t
}

// kyvernoReady asks for the field that older versions have instead of conditions.
func kyvernoReady(obj kinds.Object) (bool, error) {
	return rules.Bool(obj.Object, "status", "ready"), nil
}

func noConditions(obj kinds.Object) (bool, error) {
	return len(rules.List(obj.Object, "status", "conditions")) == 0, nil
}
