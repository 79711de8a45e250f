package symptom

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Selection says which Pods of its namespace are a workload's. Use PodsOf.
type Selection struct {
	// Labels and Fields are the selectors of the list that has all of its Pods; empty for any.
	Labels, Fields string
	// UID of the workload.
	UID types.UID

	name string
	sets bool // whether ReplicaSets of its name are its own, and their Pods
}

// viaReplicaSets are the kinds whose Pods are those of ReplicaSets with their name and a hash.
var viaReplicaSets = map[schema.GroupKind]bool{{Group: appsv1.GroupName, Kind: "Deployment"}: true, {Group: "argoproj.io", Kind: "Rollout"}: true}

// PodsOf returns the selection of the Pods of a workload: of a Pod, a Job, or an object of any kind with a Pod template and
// a label selector. uid is that of the object in the cluster. It returns false for an object that has no Pods, or
// whose Pods are not known by labels, or that has no namespace.
func PodsOf(workload *unstructured.Unstructured, uid types.UID) (Selection, bool) {
	if workload.GetNamespace() == "" {
		return Selection{}, false // a list would be one of all namespaces
	}
	out := Selection{name: workload.GetName(), UID: uid, sets: viaReplicaSets[workload.GroupVersionKind().GroupKind()]}
	switch workload.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		out.Fields = "metadata.name=" + out.name
		return out, true
	case schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}:
		out.Labels = "job-name=" + out.name // the server sets its selector, and this label
		return out, true
	}
	_, hasTemplate, err := unstructured.NestedMap(workload.Object, "spec", "template")
	if err != nil || !hasTemplate {
		return Selection{}, false
	}
	text, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found {
		return Selection{}, false
	}
	var labels metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(text, &labels); err != nil {
		return Selection{}, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&labels)
	if err != nil || selector.Empty() {
		return Selection{}, false
	}
	out.Labels = selector.String()
	return out, true
}

// Own returns those of the Pods that belong to the workload: the one that it is, and those that it, or a ReplicaSet of its
// name, controls.
func (s Selection) Own(pods []corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range pods {
		if pod := &pods[i]; pod.UID == s.UID || slices.ContainsFunc(pod.OwnerReferences, s.controls) {
			out = append(out, pod)
		}
	}
	return out
}

// controls reports whether an owner is the workload, or a ReplicaSet of it, whose name ends in a hash.
func (s Selection) controls(owner metav1.OwnerReference) bool {
	if owner.UID == s.UID {
		return true
	}
	hash, of := strings.CutPrefix(owner.Name, s.name+"-")
	return s.sets && of && owner.Kind == "ReplicaSet" && !strings.Contains(hash, "-")
}

// versions are the labels by which the Pods of a workload's versions are distinguished.
var versions = []string{"pod-template-hash", "controller-revision-hash", "rollouts-pod-template-hash"}

// Latest returns those of a workload's Pods that are of its latest version: of the one that the latest Pod is of. Of versions
// whose latest Pods are equally old it returns all.
func Latest(pods []*corev1.Pod) []*corev1.Pod {
	latest := map[string]time.Time{} // by version
	var last time.Time
	for _, pod := range pods {
		created := pod.CreationTimestamp.Time
		if created.After(latest[versionOf(pod)]) {
			latest[versionOf(pod)] = created
		}
		if created.After(last) {
			last = created
		}
	}
	var out []*corev1.Pod
	for _, pod := range pods {
		if latest[versionOf(pod)].Equal(last) {
			out = append(out, pod)
		}
	}
	return out
}

func versionOf(pod *corev1.Pod) string {
	for _, label := range versions {
		if hash := pod.Labels[label]; hash != "" {
			return hash
		}
	}
	return ""
}
