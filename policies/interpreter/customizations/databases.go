package customizations

import (
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/words"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// databases returns the rules for the kinds of database operators.
func databases() kinds.Table {
	t := kinds.Table{words.Kind("postgresql.cnpg.io/v1", "Cluster"): {
		Reflect:   rules.Reflect("instances", "readyInstances", "phase", "phaseReason", "conditions"),
		Health:    words.All(words.IsTrue("Ready"), words.Enough("status.readyInstances", "spec.instances", 1)),
		Aggregate: rules.Aggregate(rules.Sum("instances", "readyInstances"), rules.Quote("phase", "phaseReason"), rules.EveryCondition()),
		Dependencies: words.Needs(
			words.Secrets("spec.superuserSecret.name", "spec.imagePullSecrets.*.name", "spec.certificates.*Secret", "spec.bootstrap.*.secret.name",
				"spec.backup.barmanObjectStore.*Credentials.*.name", "spec.managed.roles.*.passwordSecret.name",
				"spec.externalClusters.*.password.name", "spec.externalClusters.*.ssl*.name",
				"spec.externalClusters.*.barmanObjectStore.*Credentials.*.name"),
			words.ConfigMaps("spec.monitoring.customQueriesConfigMap.*.name"),
		),
	}}
	words.Served(t, "kafka.strimzi.io", []string{"v1", "v1beta2"}, "Kafka", kinds.Rules{
		Reflect: rules.ReflectTracked("conditions", "clusterId", "kafkaVersion", "operatorLastSuccessfulVersion"),
		Health:  words.All(words.Current, words.IsTrue("Ready")),
		Aggregate: rules.Aggregate(rules.EveryCondition("NotReady", "Warning", "ReconciliationPaused"),
			rules.Same("kafkaVersion", "operatorLastSuccessfulVersion"), rules.Observe),
		Dependencies: words.Needs(
			words.Secrets("spec.kafka.listeners.*.configuration.brokerCertChainAndKey.secretName", "spec.kafka.listeners.*.authentication.*Secret*.name",
				"spec.*.template.pod.imagePullSecrets.*.name"),
			words.ConfigMaps("spec.kafka.metricsConfig.valueFrom.configMapKeyRef.name", "spec.*.logging.valueFrom.configMapKeyRef.name"),
		),
	})
	return t
}
