package installation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

const (
	kubeconfigDir = "/etc/karmada/config"
	dataDir       = "/var/lib/flotilla-agent"
	metricsPort   = 8080
	healthPort    = 10357
	// nobody is the user id of the agent's process.
	nobody = 65532
)

// deployment returns the Deployment of the agent. Only one Pod runs at a time, because an agent does
// not share its data.
func (o *Options) deployment(meta metav1.ObjectMeta) *appsv1.Deployment {
	app := map[string]string{"app": o.Name}
	for key, value := range app {
		meta.Labels[key] = value
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(o.Replicas),
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: app, Annotations: map[string]string{credentialsAnnotation: o.fingerprint()}},
			Spec: corev1.PodSpec{
				ServiceAccountName: account,
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot:   ptr.To(true),
					RunAsUser:      ptr.To[int64](nobody),
					FSGroup:        ptr.To[int64](nobody),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{o.container()},
				Volumes:    o.volumes(),
			},
		},
	}}
}

func (o *Options) container() corev1.Container {
	return corev1.Container{
		Name:    o.Name,
		Image:   o.Image,
		Command: []string{"flotilla-agent"},
		Args: append([]string{
			"--karmada-kubeconfig=" + kubeconfigDir + "/" + Secret,
			"--karmada-kubeconfig-namespace=" + o.Namespace,
			"--cluster-name=" + o.Cluster,
			"--data-dir=" + dataDir,
			fmt.Sprintf("--metrics-bind-address=:%d", metricsPort),
			fmt.Sprintf("--health-probe-bind-address=:%d", healthPort),
		}, o.Args...),
		Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: metricsPort}},
		LivenessProbe:  probe("/healthz"),
		ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false),
			ReadOnlyRootFilesystem:   ptr.To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		VolumeMounts: o.mounts(),
	}
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(healthPort)}},
		PeriodSeconds:    10,
		FailureThreshold: 3,
		TimeoutSeconds:   5,
	}
}

// credentialsAnnotation on the agent's Pods distinguishes registrations. It makes a new registration
// restart the agent, which would otherwise keep the data and configuration of the last one.
const credentialsAnnotation = "cluster.flotilla.io/credentials"

// fingerprint returns a short hash of the kubeconfig, which does not reveal its content.
func (o *Options) fingerprint() string {
	const short = 8
	sum := sha256.Sum256(o.Kubeconfig)
	return hex.EncodeToString(sum[:short])
}
