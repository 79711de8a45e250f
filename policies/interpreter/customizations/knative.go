package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// knative returns the rules for Knative Serving. A Service scales itself: it has
// no replicas to divide. Its address differs from cluster to cluster.
func knative() kinds.Table {
	names := []string{"url", "latestCreatedRevisionName", "latestReadyRevisionName"}
	return kinds.Table{words.Kind("serving.knative.dev/v1", "Service"): {
		Reflect:      rules.ReflectTracked(append(names, "address", "conditions")...),
		Health:       words.All(words.SpecObserved, rules.Ready("Ready")),
		Aggregate:    rules.Aggregate(rules.EveryCondition(), rules.Same(names...), rules.Alike("address"), rules.Observe),
		Dependencies: words.Pods("spec.template.spec"),
	}}
}
