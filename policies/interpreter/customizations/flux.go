package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

const sourceVersion = "source.toolkit.fluxcd.io/v1"

// flux is Flux as it runs in members, in every version of its kinds that is
// still served.
func flux() kinds.Table {
	t := kinds.Table{}
	source, old := "source.toolkit.fluxcd.io", []string{"v1", "v1beta2", "v1beta1"}
	served(t, source, old, "GitRepository", gitRepository())
	served(t, source, old, "Bucket", bucket())
	served(t, source, old, "HelmRepository", helmRepository())
	served(t, source, old, "HelmChart", helmChart())
	served(t, source, old[:2], "OCIRepository", ociRepository())
	served(t, source, old[:1], "ExternalArtifact", kinds.Rules{
		Reflect: reflectSource, Health: rules.Ready("Ready"), Aggregate: rules.Aggregate(fluxConditions()),
	})
	served(t, "kustomize.toolkit.fluxcd.io", old, "Kustomization", kustomization())
	served(t, "helm.toolkit.fluxcd.io", []string{"v2", "v2beta2", "v2beta1"}, "HelmRelease", helmRelease())
	return t
}

// reconciled is what all kinds of Flux have. Suspending on the spot, as its
// command line does, stays until it is undone there; and what is suspended is
// not looked at, so its status may be about an older spec.
func reconciled(r kinds.Rules) kinds.Rules {
	r.Health = all(isTrue("Ready"), notTrue("Stalled"), oneOf(settled, asks("spec.suspend")))
	r.Retain, r.Retains = leave("spec.suspend"), has("spec.suspend")
	return r
}

func fluxConditions() rules.Step {
	return rules.EveryCondition("FetchFailed", "BuildFailed", "IncludeUnavailable", "ArtifactOutdated", "StorageOperationFailed", "Remediated")
}

// source is what all sources have. An artifact's address works in its member
// only: the template has none.
func source(dependencies need) kinds.Rules {
	return reconciled(kinds.Rules{
		Reflect:      reflectSource,
		Aggregate:    rules.Aggregate(fluxConditions(), rules.Same("lastHandledReconcileAt"), rules.Observe),
		Dependencies: dependencies,
	})
}

// reflectSource reports of the artifact which one it is.
func reflectSource(observed kinds.Object) (map[string]any, error) {
	out, err := rules.ReflectTracked("conditions", "artifact", "lastHandledReconcileAt")(observed)
	if artifact := rules.Object(out, "artifact"); artifact != nil {
		out["artifact"] = pick(artifact, "revision", "digest", "lastUpdateTime")
	}
	return out, err
}

func gitRepository() kinds.Rules {
	return source(needs(
		secrets("spec.secretRef.name", "spec.proxySecretRef.name", "spec.verify.secretRef.name"),
		serviceAccounts("spec.serviceAccountName"),
		named(sourceVersion, "GitRepository", "spec.include.*.repository.name"),
	))
}

func bucket() kinds.Rules {
	return source(needs(
		secrets("spec.secretRef.name", "spec.proxySecretRef.name", "spec.certSecretRef.name", "spec.sts.secretRef.name",
			"spec.sts.certSecretRef.name"),
		serviceAccounts("spec.serviceAccountName"),
	))
}

// helmRepository of OCI registries is only an address: nothing reconciles it.
func helmRepository() kinds.Rules {
	r := source(secrets("spec.secretRef.name", "spec.certSecretRef.name"))
	r.Health = oneOf(word("spec.type", "oci"), r.Health)
	return r
}

func helmChart() kinds.Rules {
	return source(needs(
		refs(sourceVersion, "HelmRepository", "spec.sourceRef"),
		secrets("spec.verify.secretRef.name"),
	))
}

func ociRepository() kinds.Rules {
	return source(needs(
		secrets("spec.secretRef.name", "spec.certSecretRef.name", "spec.proxySecretRef.name", "spec.verify.secretRef.name",
			"spec.verify.trustedRootSecretRef.name"),
		serviceAccounts("spec.serviceAccountName"),
	))
}

func kustomization() kinds.Rules {
	revisions := []string{"lastAppliedRevision", "lastAttemptedRevision", "lastHandledReconcileAt"}
	return reconciled(kinds.Rules{
		Reflect:   rules.ReflectTracked(append(revisions, "conditions")...),
		Aggregate: rules.Aggregate(fluxConditions(), rules.Same(revisions...), rules.Observe),
		Dependencies: needs(
			refs(sourceVersion, "GitRepository", "spec.sourceRef"),
			refs("", "Kustomization", "spec.dependsOn.*"),
			refs("v1", "ConfigMap", "spec.postBuild.substituteFrom.*"),
			secrets("spec.decryption.secretRef.name", "spec.kubeConfig.secretRef.name"),
			configMaps("spec.kubeConfig.configMapRef.name"),
			serviceAccounts("spec.serviceAccountName", "spec.decryption.serviceAccountName"),
		),
	})
}

func helmRelease() kinds.Rules {
	revisions := []string{"lastAppliedRevision", "lastAttemptedRevision", "lastHandledReconcileAt", "lastAttemptedConfigDigest"}
	failures := []string{"failures", "installFailures", "upgradeFailures"}
	return reconciled(kinds.Rules{
		Reflect:   rules.ReflectTracked(append(append(revisions, failures...), "conditions")...),
		Aggregate: rules.Aggregate(fluxConditions(), rules.Same(revisions...), rules.Sum(failures...), rules.Observe),
		Dependencies: needs(
			refs(sourceVersion, "HelmRepository", "spec.chart.spec.sourceRef", "spec.chartRef"),
			refs("", "HelmRelease", "spec.dependsOn.*"),
			refs("v1", "ConfigMap", "spec.valuesFrom.*"),
			secrets("spec.kubeConfig.secretRef.name", "spec.chart.spec.verify.secretRef.name"),
			configMaps("spec.kubeConfig.configMapRef.name"),
			serviceAccounts("spec.serviceAccountName"),
		),
	})
}
