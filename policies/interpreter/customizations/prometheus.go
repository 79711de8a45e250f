package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// prometheus returns the rules for the kinds of the Prometheus operator.
func prometheus() kinds.Table {
	const v1 = "monitoring.coreos.com/v1"
	t := kinds.Table{
		words.Kind(v1, "Prometheus"): monitor(remoteNeeds("spec.remoteWrite.*"), remoteNeeds("spec.remoteRead.*"),
			remoteNeeds("spec.alerting.alertmanagers.*"), remoteNeeds("spec.apiserverConfig"),
			words.Secrets("spec.thanos.objectStorageConfig.name", "spec.additional*.name")),
		words.Kind(v1, "Alertmanager"): monitor(words.Secrets("spec.configSecret"), remoteNeeds("spec.alertmanagerConfiguration.global.httpConfig")),
		words.Kind(v1, "ThanosRuler"): monitor(remoteNeeds("spec.remoteWrite.*"),
			words.Secrets("spec.objectStorageConfig.name", "spec.alertmanagersConfig.name",
				"spec.queryConfig.name", "spec.alertRelabelConfigs.name", "spec.tracingConfig.name")),
		words.Kind(v1, "ServiceMonitor"): {Health: bound, Dependencies: remoteNeeds("spec.endpoints.*")},
		words.Kind(v1, "PodMonitor"):     {Health: bound, Dependencies: remoteNeeds("spec.podMetricsEndpoints.*")},
		words.Kind(v1, "Probe"):          {Health: bound, Dependencies: remoteNeeds("spec")},
		// Alerting rules refer to no other object.
		words.Kind(v1, "PrometheusRule"): {Health: bound},
	}
	agent := t[words.Kind(v1, "Prometheus")]
	t[words.Kind("monitoring.coreos.com/v1alpha1", "PrometheusAgent")] = agent
	return t
}

// monitor returns the rules for a server that the operator runs, whose conditions
// each say which generation they are about.
func monitor(dependencies ...words.Need) kinds.Rules {
	counts := []string{"replicas", "updatedReplicas", "availableReplicas", "unavailableReplicas"}
	return kinds.Rules{
		Reflect:   rules.ReflectTracked(append(counts, "paused", "conditions")...),
		Health:    words.All(rules.Ready("Available"), rules.Ready("Reconciled")),
		Aggregate: rules.Aggregate(rules.Sum(counts...), rules.Everywhere("paused"), rules.EveryCondition()),
		Dependencies: words.Needs(append(dependencies,
			words.PodsOf(words.PodOf{Containers: []string{"spec.containers.*", "spec.initContainers.*"}, Volumes: []string{"spec.volumes.*"}}),
			words.ServiceAccounts("spec.serviceAccountName"),
			words.Secrets("spec.secrets.*", "spec.imagePullSecrets.*.name", "spec.web.tlsConfig.keySecret.name", "spec.web.tlsConfig.*.secret.name"),
			words.ConfigMaps("spec.configMaps.*", "spec.web.tlsConfig.*.configMap.name"),
		)...),
	}
}

// remoteNeeds returns a rule that finds the secrets and config maps that the
// connection settings at the path refer to.
func remoteNeeds(path string) words.Need {
	return words.Needs(
		words.Secrets(path+".basicAuth.*.name", path+".bearerTokenSecret.name", path+".authorization.credentials.name",
			path+".oauth2.clientSecret.name",
			path+".oauth2.clientId.secret.name", path+".tlsConfig.*.secret.name", path+".tlsConfig.keySecret.name", path+".sigv4.*Key.name",
			path+".azureAd.oauth.clientSecret.name"),
		words.ConfigMaps(path+".oauth2.clientId.configMap.name", path+".tlsConfig.*.configMap.name"),
	)
}

// bound reports whether no server that has selected the object refuses it.
// Without bindings it is healthy: nothing may have selected it, and older
// operators do not report them.
func bound(obj kinds.Object) (bool, error) {
	for _, c := range words.Objects(obj.Object, "status.bindings.*.conditions.*") {
		if rules.Text(c, "type") == "Accepted" && rules.Text(c, "status") == "False" {
			return false, nil
		}
	}
	return true, nil
}
