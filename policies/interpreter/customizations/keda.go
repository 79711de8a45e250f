package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// keda is KEDA. Its conditions say neither since when nor of which spec they are.
func keda() kinds.Table {
	const v1alpha1 = "keda.sh/v1alpha1"
	authentication := words.Refs(v1alpha1, "TriggerAuthentication", "spec.triggers.*.authenticationRef")
	secretKeys := words.Needs(
		words.Secrets("spec.secretTargetRef.*.name", "spec.*.*redential*.*.valueFrom.secretKeyRef.name",
			"spec.hashiCorpVault.credential.*.secretKeyRef.name"),
		words.ConfigMaps("spec.configMapTargetRef.*.name"),
		words.ServiceAccounts("spec.boundServiceAccountToken.*.serviceAccountName", "spec.hashiCorpVault.credential.serviceAccountName"),
	)
	// Fallback and paused are not as it is meant to be; active is anywhere.
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
		// What authenticates triggers of the whole cluster lies where KEDA runs.
		words.Kind(v1alpha1, "ClusterTriggerAuthentication"): {Dependencies: words.Within(words.Always("keda"), secretKeys)},
	}
}
