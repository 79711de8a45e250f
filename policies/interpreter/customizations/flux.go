package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

const sourceVersion = "source.toolkit.fluxcd.io/v1"

// flux returns the rules for the kinds of a Flux that runs in members, in every
// version of its API that is still served.
func flux() kinds.Table {
	t := kinds.Table{}
	source, old := "source.toolkit.fluxcd.io", []string{"v1", "v1beta2", "v1beta1"}
	words.Served(t, source, old, "GitRepository", gitRepository())
	words.Served(t, source, old, "Bucket", bucket())
	words.Served(t, source, old, "HelmRepository", helmRepository())
	words.Served(t, source, old, "HelmChart", helmChart())
	words.Served(t, source, old[:2], "OCIRepository", ociRepository())
	words.Served(t, source, old[:1], "ExternalArtifact", kinds.Rules{
		Reflect: reflectSource(), Health: rules.Ready("Ready"), Aggregate: rules.Aggregate(fluxConditions()),
	})
	words.Served(t, "kustomize.toolkit.fluxcd.io", old, "Kustomization", kustomization())
	words.Served(t, "helm.toolkit.fluxcd.io", []string{"v2", "v2beta2", "v2beta1"}, "HelmRelease", helmRelease())
	return t
}

// reconciled adds what all kinds of Flux share. Suspending in the member, as flux
// suspend does, lasts until it is undone there. Flux does not reconcile what is
// suspended, so its status may be about an older spec.
func reconciled(r kinds.Rules) kinds.Rules {
	r.Health = words.All(words.IsTrue("Ready"), words.NotTrue("Stalled"), words.OneOf(words.SpecObserved, words.Asks("spec.suspend")))
	r.Retain, r.Retains = words.Leave("spec.suspend"), words.Has("spec.suspend")
	return r
}

func fluxConditions() rules.Step {
	return rules.EveryCondition("FetchFailed", "BuildFailed", "IncludeUnavailable", "ArtifactOutdated", "StorageOperationFailed", "Remediated")
}

// source returns the rules that all sources share; more names fields that only
// some report.
func source(dependencies words.Need, more ...string) kinds.Rules {
	return reconciled(kinds.Rules{
		Reflect:      reflectSource(more...),
		Aggregate:    rules.Aggregate(fluxConditions(), rules.Same("lastHandledReconcileAt"), rules.Observe),
		Dependencies: dependencies,
	})
}

// reflectSource reports which artifact there is, without its URL: that works in
// its own member only.
func reflectSource(more ...string) func(kinds.Object) (map[string]any, error) {
	tracked := rules.ReflectTracked(append([]string{"conditions", "artifact", "lastHandledReconcileAt"}, more...)...)
	return func(observed kinds.Object) (map[string]any, error) {
		out, err := tracked(observed)
		if artifact := rules.Object(out, "artifact"); artifact != nil {
			out["artifact"] = words.Pick(artifact, "revision", "digest", "lastUpdateTime")
		}
		return out, err
	}
}

func gitRepository() kinds.Rules {
	return source(words.Needs(
		words.Secrets("spec.secretRef.name", "spec.proxySecretRef.name", "spec.verify.secretRef.name"),
		words.ServiceAccounts("spec.serviceAccountName"),
		words.Named(sourceVersion, "GitRepository", "spec.include.*.repository.name"),
	), "observedIgnore", "observedRecurseSubmodules")
}

func bucket() kinds.Rules {
	return source(words.Needs(
		words.Secrets("spec.secretRef.name", "spec.proxySecretRef.name", "spec.certSecretRef.name", "spec.sts.secretRef.name",
			"spec.sts.certSecretRef.name"),
		words.ServiceAccounts("spec.serviceAccountName"),
	), "observedIgnore")
}

// helmRepository returns the rules for a HelmRepository. One of type oci is only
// an address that Flux does not reconcile: it has no status to judge.
func helmRepository() kinds.Rules {
	r := source(words.Secrets("spec.secretRef.name", "spec.certSecretRef.name"))
	r.Health = words.OneOf(words.Word("spec.type", "oci"), r.Health)
	return r
}

func helmChart() kinds.Rules {
	observed := []string{"observedChartName", "observedSourceArtifactRevision"}
	r := source(words.Needs(
		words.Refs(sourceVersion, "HelmRepository", "spec.sourceRef"),
		words.Secrets("spec.verify.secretRef.name"),
	), observed...)
	r.Aggregate = rules.Aggregate(fluxConditions(), rules.Same("lastHandledReconcileAt"), rules.Same(observed...), rules.Observe)
	return r
}

func ociRepository() kinds.Rules {
	return source(words.Needs(
		words.Secrets("spec.secretRef.name", "spec.certSecretRef.name", "spec.proxySecretRef.name", "spec.verify.secretRef.name",
			"spec.verify.trustedRootSecretRef.name"),
		words.ServiceAccounts("spec.serviceAccountName"),
	), "observedIgnore", "observedLayerSelector")
}

func kustomization() kinds.Rules {
	revisions := []string{"lastAppliedRevision", "lastAttemptedRevision", "lastHandledReconcileAt"}
	return reconciled(kinds.Rules{
		Reflect:   rules.ReflectTracked(append(revisions, "conditions")...),
		Aggregate: rules.Aggregate(fluxConditions(), rules.Same(revisions...), rules.Observe),
		Dependencies: words.Needs(
			words.Refs(sourceVersion, "GitRepository", "spec.sourceRef"),
			words.Refs("", "Kustomization", "spec.dependsOn.*"),
			words.Refs("v1", "ConfigMap", "spec.postBuild.substituteFrom.*"),
			words.Secrets("spec.decryption.secretRef.name", "spec.kubeConfig.secretRef.name"),
			words.ConfigMaps("spec.kubeConfig.configMapRef.name"),
			words.ServiceAccounts("spec.serviceAccountName", "spec.decryption.serviceAccountName"),
		),
	})
}

func helmRelease() kinds.Rules {
	revisions := []string{"lastAppliedRevision", "lastAttemptedRevision", "lastHandledReconcileAt", "lastAttemptedConfigDigest",
		"lastAttemptedValuesChecksum", "helmChart"}
	failures := []string{"failures", "installFailures", "upgradeFailures"}
	return reconciled(kinds.Rules{
		Reflect:   rules.ReflectTracked(append(append(revisions, failures...), "conditions", "lastReleaseRevision")...),
		Aggregate: rules.Aggregate(fluxConditions(), rules.Same(revisions...), rules.Alike("lastReleaseRevision"), rules.Sum(failures...), rules.Observe),
		Dependencies: words.Needs(
			words.Refs(sourceVersion, "HelmRepository", "spec.chart.spec.sourceRef", "spec.chartRef"),
			words.Refs("", "HelmRelease", "spec.dependsOn.*"),
			words.Refs("v1", "ConfigMap", "spec.valuesFrom.*"),
			words.Secrets("spec.kubeConfig.secretRef.name", "spec.chart.spec.verify.secretRef.name"),
			words.ConfigMaps("spec.kubeConfig.configMapRef.name"),
			words.ServiceAccounts("spec.serviceAccountName"),
		),
	})
}
