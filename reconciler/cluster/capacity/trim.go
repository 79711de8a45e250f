package capacity

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podrequests "k8s.io/component-helpers/resource"

	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
)

// nodeOffer is what is kept of a node.
type nodeOffer struct {
	metav1.ObjectMeta
	nodes.Node
	ready bool
	offer corev1.ResourceList
}

// podNeed is what is kept of a pod.
type podNeed struct {
	metav1.ObjectMeta
	nodes.Pod
}

// quotaRest is what is kept of a ResourceQuota.
type quotaRest struct {
	metav1.ObjectMeta
	nodes.Quota
}

// TrimNode keeps what counts of a node; anything else passes as it is.
func TrimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &nodeOffer{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: node.ResourceVersion},
		Node: nodes.Node{
			Name: node.Name, Labels: node.Labels, Taints: nodes.TaintsOf(&node.Spec), Allocatable: nodes.AmountsOf(node.Status.Allocatable),
		},
		offer: node.Status.Allocatable,
	}
	for _, c := range node.Status.Conditions {
		out.ready = out.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	return out, nil
}

// TrimPod keeps what counts of a pod; anything else passes as it is.
func TrimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	out := &podNeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion},
		Pod: nodes.Pod{
			Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
			Over:     pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
			Requests: nodes.AmountsOf(podrequests.PodRequests(pod, podrequests.PodResourcesOptions{})),
		},
	}
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return out, nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			out.Waits, out.Created = c.LastTransitionTime.Time, pod.CreationTimestamp.Time
			out.Owner = ownerOf(pod)
		}
	}
	return out, nil
}

// rolloutTemplate is the label by which Argo Rollouts distinguishes its ReplicaSets.
const rolloutTemplate = "rollouts-pod-template-hash"

// deploymentTemplate is that of Deployments.
const deploymentTemplate = "pod-template-hash"

func ownerOf(pod *corev1.Pod) nodes.Owner {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil {
		return nodes.Owner{}
	}
	return nodes.Owner{
		APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, Template: cmp.Or(pod.Labels[deploymentTemplate], pod.Labels[rolloutTemplate]),
	}
}

// TrimQuota keeps what counts of a ResourceQuota; anything else passes as it is.
func TrimQuota(obj any) (any, error) {
	quota, ok := obj.(*corev1.ResourceQuota)
	if !ok {
		return obj, nil
	}
	return &quotaRest{
		ObjectMeta: metav1.ObjectMeta{Namespace: quota.Namespace, Name: quota.Name, ResourceVersion: quota.ResourceVersion},
		Quota:      *nodes.QuotaOf(quota),
	}, nil
}
