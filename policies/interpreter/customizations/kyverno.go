package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// kyverno returns the rules for Kyverno's policies. Their derived fields follow
// from the policy alone, so they are the same in every cluster.
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

// kyvernoReady reads the field that older versions set instead of conditions.
func kyvernoReady(obj kinds.Object) (bool, error) {
	return rules.Bool(obj.Object, "status", "ready"), nil
}

func noConditions(obj kinds.Object) (bool, error) {
	return len(rules.List(obj.Object, "status", "conditions")) == 0, nil
}
