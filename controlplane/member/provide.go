package member

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

const (
	// storageClass is the class of claims that name none, and provisioner who answers them.
	storageClass = "standard"
	provisioner  = "flotilla.io/simulated"
)

// service gives a Service that asks for a load balancer an address of TEST-NET-3, and takes it from one that does
// not any more.
func (p *provider) service(ctx context.Context, name cache.ObjectName) error {
	s, err := p.objects.Core().V1().Services().Lister().Services(name.Namespace).Get(name.Name)
	if err != nil || s.DeletionTimestamp != nil {
		return err
	}
	wants, has := s.Spec.Type == corev1.ServiceTypeLoadBalancer, len(s.Status.LoadBalancer.Ingress) > 0
	if wants == has {
		return nil
	}
	var addresses []string
	if wants {
		addresses = append(addresses, addressFrom(netip.AddrFrom4([4]byte{203, 0, 113, 0}), name.String()))
	}
	patch, err := statusPatch(addresses...)
	if err != nil {
		return err
	}
	_, err = p.member.CoreV1().Services(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// ingress gives an Ingress an address of TEST-NET-2, the same for all of a class.
func (p *provider) ingress(ctx context.Context, name cache.ObjectName) error {
	i, err := p.objects.Networking().V1().Ingresses().Lister().Ingresses(name.Namespace).Get(name.Name)
	if err != nil || i.DeletionTimestamp != nil || len(i.Status.LoadBalancer.Ingress) > 0 {
		return err
	}
	class := ""
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	patch, err := statusPatch(addressFrom(netip.AddrFrom4([4]byte{198, 51, 100, 0}), class))
	if err != nil {
		return err
	}
	_, err = p.member.NetworkingV1().Ingresses(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// provisionVolume makes the volume that an unbound claim of our class waits for; the controller manager binds the two.
func (p *provider) provisionVolume(ctx context.Context, name cache.ObjectName) error {
	c, err := p.objects.Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if err != nil || c.DeletionTimestamp != nil {
		return err
	}
	if c.Spec.VolumeName != "" || c.Spec.StorageClassName == nil || *c.Spec.StorageClassName != storageClass {
		return nil
	}
	_, err = p.member.CoreV1().PersistentVolumes().Create(ctx, volumeFor(c), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func volumeFor(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(c.UID),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              storageClass,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			AccessModes:                   c.Spec.AccessModes,
			VolumeMode:                    c.Spec.VolumeMode,
			Capacity:                      c.Spec.Resources.Requests,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/simulated/" + string(c.UID)}},
		},
	}
}

// volume deletes a volume of ours whose claim is gone.
func (p *provider) volume(ctx context.Context, name cache.ObjectName) error {
	v, err := p.objects.Core().V1().PersistentVolumes().Lister().Get(name.Name)
	if err != nil || v.DeletionTimestamp != nil {
		return err
	}
	if v.Spec.StorageClassName != storageClass || v.Status.Phase != corev1.VolumeReleased || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	return p.member.CoreV1().PersistentVolumes().Delete(ctx, name.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &v.UID}})
}
