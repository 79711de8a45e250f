package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// keda is KEDA. Its conditions say neither since when nor of which spec they are.
func keda() kinds.Table {
	const v1alpha1 = "keda.sh/v1alpha1"
	authentication := refs(v1alpha1, "TriggerAuthentication", "spec.triggers.*.authenticationRef")
	secretKeys := needs(
		secrets("spec.secretTargetRef.*.name", "spec.*.*redential*.*.valueFrom.secretKeyRef.name",
			"spec.hashiCorpVault.credential.*.secretKeyRef.name"),
		configMaps("spec.configMapTargetRef.*.name"),
		serviceAccounts("spec.boundServiceAccountToken.*.serviceAccountName", "spec.hashiCorpVault.credential.serviceAccountName"),
	)
	// Fallback and paused are not as it is meant to be; active is anywhere.
	scaled := rules.EveryCondition("Active", "Fallback")
	return kinds.Table{
		kind(v1alpha1, "ScaledObject"): {
			Reflect: rules.Track(rules.Reflect("conditions", "hpaName", "scaleTargetKind", "originalReplicaCount",
				"pausedReplicaCount", "externalMetricNames", "resourceMetricNames")),
			Health: all(isTrue("Ready"), notTrue("Fallback")),
			Aggregate: rules.Aggregate(scaled, rules.Same("hpaName", "scaleTargetKind"),
				rules.Alike("externalMetricNames", "resourceMetricNames")),
			Dependencies: authentication,
		},
		kind(v1alpha1, "ScaledJob"): {
			Reflect:      rules.Track(rules.Reflect("conditions")),
			Health:       isTrue("Ready"),
			Aggregate:    rules.Aggregate(scaled),
			Dependencies: needs(authentication, pods("spec.jobTargetRef.template.spec")),
		},
		kind(v1alpha1, "TriggerAuthentication"): {Dependencies: secretKeys},
		// What authenticates triggers of the whole cluster lies where KEDA runs.
		kind(v1alpha1, "ClusterTriggerAuthentication"): {Dependencies: within(always("keda"), secretKeys)},
	}
}
