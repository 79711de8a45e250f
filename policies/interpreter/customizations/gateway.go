package customizations

import (
	"cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Lengths of lists that the schema of the Gateway API allows.
const (
	mostAddresses = 16
	mostListeners = 64
	mostParents   = 32
)

// gateway returns the rules for the kinds of the Gateway API, whose conditions
// each say which generation they are about.
func gateway() kinds.Table {
	const group = "gateway.networking.k8s.io"
	t := kinds.Table{}
	words.Served(t, group, []string{"v1", "v1beta1"}, "GatewayClass", kinds.Rules{
		Reflect:   rules.ReflectTracked("conditions"),
		Health:    rules.Ready("Accepted"),
		Aggregate: rules.Aggregate(rules.EveryCondition()),
	})
	words.Served(t, group, []string{"v1", "v1beta1"}, "Gateway", kinds.Rules{
		Reflect: rules.ReflectTracked("addresses", "conditions", "listeners"),
		Health:  words.All(rules.Ready("Accepted"), rules.Ready("Programmed"), listenersWork),
		Aggregate: rules.Aggregate(rules.Collect("addresses"), rules.Shorten("addresses", mostAddresses), rules.EveryCondition(),
			rules.Entries("listeners", mostListeners, []string{"name"}, rules.Greatest("attachedRoutes"), rules.First("supportedKinds"),
				rules.EveryCondition("Conflicted", "OverlappingTLSConfig"),
				rules.Default(map[string]any{"supportedKinds": []any{}, "conditions": []any{}}))),
		Dependencies: words.Needs(
			references("Secret", "spec.listeners.*.tls.certificateRefs.*"),
			references("ConfigMap", "spec.listeners.*.tls.frontendValidation.caCertificateRefs.*"),
		),
	})
	route := kinds.Rules{
		Reflect: rules.ReflectTracked("parents"),
		Health:  routed,
		Aggregate: rules.Aggregate(rules.Entries("parents", mostParents, []string{"parentRef", "controllerName"},
			rules.EveryCondition("PartiallyInvalid"), rules.Default(map[string]any{"conditions": []any{}}))),
	}
	words.Served(t, group, []string{"v1", "v1beta1"}, "HTTPRoute", route)
	words.Served(t, group, []string{"v1", "v1alpha2"}, "GRPCRoute", route)
	words.Served(t, group, []string{"v1", "v1alpha3", "v1alpha2"}, "TLSRoute", route)
	words.Served(t, group, []string{"v1alpha2"}, "TCPRoute", route)
	words.Served(t, group, []string{"v1alpha2"}, "UDPRoute", route)
	return t
}

// listenersWork reports whether no listener is refused, in conflict, or without
// something that it refers to. A condition that a listener does not have is no
// fault.
func listenersWork(obj kinds.Object) (bool, error) {
	for _, l := range rules.Objects(obj.Object, "status", "listeners") {
		given := rules.List(l, "conditions")
		for _, t := range []string{"Accepted", "Programmed", "ResolvedRefs"} {
			if rules.Text(rules.Condition(given, t), "status") == "False" {
				return false, nil
			}
		}
		if rules.ConditionTrue(given, "Conflicted") {
			return false, nil
		}
	}
	return true, nil
}

// routed reports whether the route has a parent, and all parents that have taken
// it up accept its latest spec and find what it refers to.
func routed(obj kinds.Object) (bool, error) {
	parents := rules.Objects(obj.Object, "status", "parents")
	for _, p := range parents {
		for _, t := range []string{"Accepted", "ResolvedRefs"} {
			c := rules.Condition(rules.List(p, "conditions"), t)
			if rules.Text(c, "status") != "True" || rules.Number(c, "observedGeneration") < obj.GetGeneration() {
				return false, nil
			}
		}
	}
	return len(parents) > 0, nil
}

// references returns a rule that finds the objects of a core kind to which the
// references at the path refer; those of other groups and kinds are skipped.
func references(kind string, path string) words.Need {
	return func(obj kinds.Object) ([]kinds.Dependency, error) {
		var found []kinds.Dependency
		for _, ref := range words.Objects(obj.Object, path) {
			needs := rules.Needs{Namespace: cmp.Or(rules.Text(ref, "namespace"), obj.GetNamespace())}
			if rules.Text(ref, "group") == "" && cmp.Or(rules.Text(ref, "kind"), kind) == kind {
				needs.Add(kind, rules.Text(ref, "name"))
			}
			found = append(found, needs.Sorted()...)
		}
		return rules.Union(found), nil
	}
}
