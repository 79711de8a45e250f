package native

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

func podDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	return specDependencies(obj, object(obj.Object, "spec"))
}

func templateDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	return specDependencies(obj, object(obj.Object, "spec", "template", "spec"))
}

func cronJobDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	return specDependencies(obj, object(obj.Object, "spec", "jobTemplate", "spec", "template", "spec"))
}

// statefulSetDependencies leaves out the claims that the set makes itself.
func statefulSetDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	own := map[string]bool{}
	for _, entry := range list(obj.Object, "spec", "volumeClaimTemplates") {
		if m, ok := entry.(map[string]any); ok {
			own[text(m, "metadata", "name")] = true
		}
	}
	deps, err := templateDependencies(obj)
	return slices.DeleteFunc(deps, func(d kinds.Dependency) bool {
		return d.Kind == "PersistentVolumeClaim" && own[d.Name]
	}), err
}

func ingressDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	w := walker{namespace: obj.GetNamespace()}
	for _, entry := range list(obj.Object, "spec", "tls") {
		if m, ok := entry.(map[string]any); ok {
			w.add("Secret", text(m, "secretName"))
		}
	}
	return w.sorted(), nil
}

func serviceImportDependencies(obj kinds.Object) ([]kinds.Dependency, error) {
	service := "derived-" + obj.GetName()
	return []kinds.Dependency{
		{APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: service},
		{
			APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: obj.GetNamespace(),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/service-name": service}},
		},
	}, nil
}

func specDependencies(obj kinds.Object, podSpec map[string]any) ([]kinds.Dependency, error) {
	spec, err := typed[corev1.PodSpec](podSpec)
	if err != nil {
		return nil, fmt.Errorf("pod spec: %w", err)
	}
	w := walker{namespace: obj.GetNamespace()}
	w.podSpec(spec)
	return w.sorted(), nil
}

// walker collects what a pod spec names.
type walker struct {
	namespace string
	found     []kinds.Dependency
}

func (w *walker) add(kind, name string) {
	if name != "" {
		w.found = append(w.found, kinds.Dependency{APIVersion: "v1", Kind: kind, Namespace: w.namespace, Name: name})
	}
}

func (w *walker) sorted() []kinds.Dependency {
	slices.SortFunc(w.found, func(a, b kinds.Dependency) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(w.found)
}

func (w *walker) podSpec(spec *corev1.PodSpec) {
	if spec.ServiceAccountName != "default" {
		w.add("ServiceAccount", spec.ServiceAccountName)
	}
	for _, s := range spec.ImagePullSecrets {
		w.add("Secret", s.Name)
	}
	for i := range spec.InitContainers {
		w.env(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		w.env(spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		w.env(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range spec.Volumes {
		w.volume(&spec.Volumes[i])
	}
}

func (w *walker) env(vars []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, f := range from {
		if f.ConfigMapRef != nil {
			w.add("ConfigMap", f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			w.add("Secret", f.SecretRef.Name)
		}
	}
	for _, v := range vars {
		if v.ValueFrom == nil {
			continue
		}
		if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil {
			w.add("ConfigMap", ref.Name)
		}
		if ref := v.ValueFrom.SecretKeyRef; ref != nil {
			w.add("Secret", ref.Name)
		}
	}
}

func (w *walker) volume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		w.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		w.add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		w.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				w.add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				w.add("Secret", s.Secret.Name)
			}
		}
	}
	w.driverSecret(v)
}

// driverSecret adds the secret that a volume's driver logs in with.
func (w *walker) driverSecret(v *corev1.Volume) {
	var ref *corev1.LocalObjectReference
	switch {
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	case v.AzureFile != nil:
		w.add("Secret", v.AzureFile.SecretName)
	}
	if ref != nil {
		w.add("Secret", ref.Name)
	}
}
