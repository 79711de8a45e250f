package rules

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// podSpec adds the resources that a pod spec names, but for the default service
// account, which every namespace has.
func (n *Needs) podSpec(spec *corev1.PodSpec) {
	if account := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount); account != "default" {
		n.Add("ServiceAccount", account)
	}
	for _, s := range spec.ImagePullSecrets {
		n.Add("Secret", s.Name)
	}
	for i := range spec.InitContainers {
		n.env(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		n.env(spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		n.env(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range spec.Volumes {
		n.volume(&spec.Volumes[i])
	}
}

func (n *Needs) env(vars []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, f := range from {
		if f.ConfigMapRef != nil {
			n.Add("ConfigMap", f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			n.Add("Secret", f.SecretRef.Name)
		}
	}
	for _, v := range vars {
		if v.ValueFrom == nil {
			continue
		}
		if ref := v.ValueFrom.ConfigMapKeyRef; ref != nil {
			n.Add("ConfigMap", ref.Name)
		}
		if ref := v.ValueFrom.SecretKeyRef; ref != nil {
			n.Add("Secret", ref.Name)
		}
	}
}

func (n *Needs) volume(v *corev1.Volume) {
	if v.ConfigMap != nil {
		n.Add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		n.Add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		n.Add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				n.Add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				n.Add("Secret", s.Secret.Name)
			}
		}
	}
	n.driverSecret(v)
}

// driverSecret adds the secret with which a volume's driver logs in.
func (n *Needs) driverSecret(v *corev1.Volume) {
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
	case v.Cinder != nil:
		ref = v.Cinder.SecretRef
	case v.AzureFile != nil:
		n.Add("Secret", v.AzureFile.SecretName)
	}
	if ref != nil {
		n.Add("Secret", ref.Name)
	}
}
