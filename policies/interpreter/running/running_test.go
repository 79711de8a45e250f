package running_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
)

func TestOf(t *testing.T) {
	for name, tc := range map[string]struct {
		kinds string
		want  running.Class
	}{
		"Kubernetes' workloads":       {"Pod ReplicationController Deployment.apps StatefulSet.apps ReplicaSet.apps Job.batch CronJob.batch", running.Runs},
		"what Kubernetes reads":       {"ConfigMap Secret ServiceAccount Service Namespace PersistentVolumeClaim ControllerRevision.apps", running.Passive},
		"rights, kinds and addresses": {"Role.rbac.authorization.k8s.io CustomResourceDefinition.apiextensions.k8s.io Ingress.networking.k8s.io", running.Passive},
		"what scales or protects":     {"HorizontalPodAutoscaler.autoscaling PodDisruptionBudget.policy VolumeSnapshot.snapshot.storage.k8s.io", running.Passive},
		"our own":                     {"PropagationPolicy.policy.karmada.io Cluster.cluster.karmada.io Review.gitops.flotilla.io GitRepository.source.toolkit.fluxcd.io", running.Passive},
		"a kind of others":            {"Widget.example.com Database.k8s.example.com Machine.cluster.x-k8s.io", running.Foreign},
	} {
		t.Run(name, func(t *testing.T) {
			for kind := range strings.FieldsSeq(tc.kinds) {
				if got := running.Of(schema.ParseGroupKind(kind)); got != tc.want {
					t.Errorf("%s is of class %d, want %d", kind, got, tc.want)
				}
			}
		})
	}
}

// TestEveryBundledKind lists the class of every bundled kind: a new kind fails
// the test until it is added to the right list.
func TestEveryBundledKind(t *testing.T) {
	got := map[running.Class][]string{}
	for gvk := range customizations.Table() {
		class := running.Of(gvk.GroupKind())
		if kind := gvk.GroupKind().String(); !slices.Contains(got[class], kind) {
			got[class] = append(got[class], kind)
		}
	}
	for _, kinds := range got {
		slices.Sort(kinds)
	}
	want := map[running.Class][]string{
		running.Foreign: {"Application.argoproj.io", "ApplicationSet.argoproj.io", "HelmRelease.helm.toolkit.fluxcd.io"},
		running.Runs: {
			"AdvancedCronJob.apps.kruise.io", "Alertmanager.monitoring.coreos.com", "BroadcastJob.apps.kruise.io", "CloneSet.apps.kruise.io",
			"Cluster.postgresql.cnpg.io", "DaemonSet.apps.kruise.io", "FlinkDeployment.flink.apache.org", "JAXJob.kubeflow.org", "Job.batch.volcano.sh",
			"JobSet.jobset.x-k8s.io", "Kafka.kafka.strimzi.io", "LeaderWorkerSet.leaderworkerset.x-k8s.io", "MPIJob.kubeflow.org", "Notebook.kubeflow.org",
			"PaddleJob.kubeflow.org", "Prometheus.monitoring.coreos.com", "PrometheusAgent.monitoring.coreos.com", "PyTorchJob.kubeflow.org",
			"RayCluster.ray.io", "RayJob.ray.io", "RayService.ray.io", "Rollout.argoproj.io", "ScaledJob.keda.sh", "Service.serving.knative.dev",
			"SparkApplication.sparkoperator.k8s.io", "StatefulSet.apps.kruise.io", "TFJob.kubeflow.org", "ThanosRuler.monitoring.coreos.com",
			"UnitedDeployment.apps.kruise.io", "Workflow.argoproj.io", "XGBoostJob.kubeflow.org",
		},
		running.Passive: {
			"Bucket.source.toolkit.fluxcd.io", "Certificate.cert-manager.io", "CertificateRequest.cert-manager.io", "ClusterIssuer.cert-manager.io",
			"ClusterPolicy.kyverno.io", "ClusterTriggerAuthentication.keda.sh", "ExternalArtifact.source.toolkit.fluxcd.io",
			"GRPCRoute.gateway.networking.k8s.io", "Gateway.gateway.networking.k8s.io", "GatewayClass.gateway.networking.k8s.io",
			"GitRepository.source.toolkit.fluxcd.io", "HTTPRoute.gateway.networking.k8s.io", "HelmChart.source.toolkit.fluxcd.io",
			"HelmRepository.source.toolkit.fluxcd.io", "Issuer.cert-manager.io", "Kustomization.kustomize.toolkit.fluxcd.io",
			"OCIRepository.source.toolkit.fluxcd.io", "PodMonitor.monitoring.coreos.com", "Policy.kyverno.io", "Probe.monitoring.coreos.com",
			"PrometheusRule.monitoring.coreos.com", "ScaledObject.keda.sh", "ServiceMonitor.monitoring.coreos.com", "SidecarSet.apps.kruise.io",
			"TCPRoute.gateway.networking.k8s.io", "TLSRoute.gateway.networking.k8s.io", "TriggerAuthentication.keda.sh", "UDPRoute.gateway.networking.k8s.io",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds by class (-want +got):\n%s", diff)
	}
}
