package member

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

func (c *Capacity) complete() {
	c.CPU, c.Memory, c.Pods = orElse(c.CPU, "32"), orElse(c.Memory, "128Gi"), orElse(c.Pods, "110")
}

func (c *Capacity) validate() error {
	var errs []error
	for what, text := range map[string]string{"CPUs": c.CPU, "memory": c.Memory, "pods": c.Pods} {
		if quantity, err := resource.ParseQuantity(text); err != nil || quantity.Sign() <= 0 {
			errs = append(errs, fmt.Errorf("%w: %s %q of a node is not a quantity above 0", ErrInvalid, what, text))
		}
	}
	return errors.Join(errs...)
}

func (c *Capacity) list() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse(c.CPU),
		corev1.ResourceMemory:           resource.MustParse(c.Memory),
		corev1.ResourcePods:             resource.MustParse(c.Pods),
		corev1.ResourceEphemeralStorage: resource.MustParse("512Gi"),
	}
}

// furnish makes what a new cluster needs before anything runs in it: its nodes and a class of volumes. What is
// there already stays as it is.
func furnish(ctx context.Context, member kubernetes.Interface, opts Options, pods netip.Prefix) error {
	for n := range opts.Nodes {
		node, err := newNode(opts, pods, n)
		if err != nil {
			return err
		}
		if _, err := member.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", node.Name, err)
		}
	}
	class := &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: storageClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner:       provisioner,
		ReclaimPolicy:     ptr.To(corev1.PersistentVolumeReclaimDelete),
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}
	if _, err := member.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create storage class: %w", err)
	}
	return nil
}

func newNode(opts Options, pods netip.Prefix, n int) (*corev1.Node, error) {
	name := fmt.Sprintf("%s-node-%d", opts.Name, n+1)
	part, err := nodeRange(pods, n)
	if err != nil {
		return nil, err
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR:    part.String(),
			PodCIDRs:   []string{part.String()},
			ProviderID: "simulated://" + name,
		},
		Status: corev1.NodeStatus{Capacity: opts.Node.list(), Allocatable: opts.Node.list()},
	}, nil
}

// moved updates nodes of an earlier run with the address of their kubelet.
func (k *kubelets) moved(ctx context.Context, member kubernetes.Interface) error {
	nodes, err := member.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	patch := fmt.Appendf(nil, `{"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, k.port)
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if at := node.Status.DaemonEndpoints.KubeletEndpoint.Port; at == 0 || int(at) == k.port {
			continue // it hears of it when it becomes ready
		}
		if _, err := member.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("move the kubelet of node %s: %w", node.Name, err)
		}
	}
	return nil
}
