package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// keda returns the rules for the kinds of KEDA, whose conditions have neither a
// time nor a generation.
func keda() kinds.Table {
	const v1alpha1 = "keda.sh/v1alpha1"
	authentication := words.Refs(v1alpha1, "TriggerAuthentication", "spec.triggers.*.authenticationRef")
	secretKeys := words.Needs(
		words.Secrets("spec.secretTargetRef.*.name", "spec.*.*redential*.*.valueFrom.secretKeyRef.name",
			"spec.hashiCorpVault.credential.*.secretKeyRef.name"),
		words.ConfigMaps("spec.configMapTargetRef.*.name"),
		words.ServiceAccounts("spec.boundServiceAccountToken.*.serviceAccountName", "spec.hashiCorpVault.credential.serviceAccountName"),
	)
	// Fallback, and Paused, which is adverse for every kind, are bad from any
	// cluster; a workload is active if it is in any.
	scaled := rules.EveryCondition("Active", "Fallback")
	return kinds.Table{
		words.Kind(v1alpha1, "ScaledObject"): {
			Reflect: rules.Track(rules.Reflect("conditions", "hpaName", "scaleTargetKind", "originalReplicaCount",
				"pausedReplicaCount", "externalMetricNames", "resourceMetricNames")),
			Health: words.All(words.IsTrue("Ready"), words.NotTrue("Fallback")),
			Aggregate: rules.Aggregate(scaled, rules.Same("hpaName", "scaleTargetKind"),
				rules.Alike("externalMetricNames", "resourceMetricNames")),
			Dependencies: authentication,
		},
		words.Kind(v1alpha1, "ScaledJob"): {
			Reflect:      rules.Track(rules.Reflect("conditions")),
			Health:       words.IsTrue("Ready"),
			Aggregate:    rules.Aggregate(scaled),
			Dependencies: words.Needs(authentication, words.Pods("spec.jobTargetRef.template.spec")),
		},
		words.Kind(v1alpha1, "TriggerAuthentication"): {Dependencies: secretKeys},
		// It has no namespace; KEDA reads its secrets from the namespace that it
		// runs in itself.
		words.Kind(v1alpha1, "ClusterTriggerAuthentication"): {Dependencies: words.Within(words.Always("keda"), secretKeys)},
	}
}
