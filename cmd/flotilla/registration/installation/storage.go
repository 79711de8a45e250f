package installation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// volumeClaim is the name of the PersistentVolumeClaim for the agent's data.
const volumeClaim = "karmada-agent-data"

// defaultClass is the annotation of the default StorageClass.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// Lasting reports whether the member has a default StorageClass, so that the agent's data can
// outlive its Pod. It returns false if the user may not read StorageClasses.
func Lasting(ctx context.Context, member client.Reader) (bool, error) {
	classes := &storagev1.StorageClassList{}
	err := member.List(ctx, classes)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list the member's StorageClasses: %w", err)
	}
	for i := range classes.Items {
		if classes.Items[i].Annotations[defaultClass] == "true" {
			return true, nil
		}
	}
	return false, nil
}

// volumes returns the volumes of the agent's Pod.
func (o *Options) volumes() []corev1.Volume {
	data := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	if o.Lasting {
		data = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volumeClaim}}
	}
	return []corev1.Volume{
		{Name: "kubeconfig", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: Secret}}},
		{Name: "data", VolumeSource: data},
	}
}

// mounts returns where the volumes are mounted. On a volume that outlives the Pods, each registration
// has its own folder: the agent before may have belonged to another control plane.
func (o *Options) mounts() []corev1.VolumeMount {
	data := corev1.VolumeMount{Name: "data", MountPath: dataDir}
	if o.Lasting {
		data.SubPath = o.fingerprint()
	}
	return []corev1.VolumeMount{{Name: "kubeconfig", MountPath: kubeconfigDir, ReadOnly: true}, data}
}

// volumeClaim returns the claim for the volume that outlives the agent's Pods.
func (o *Options) volumeClaim(meta metav1.ObjectMeta) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}
