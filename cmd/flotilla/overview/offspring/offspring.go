// Package offspring finds what a workload owns in a cluster: its ReplicaSets or Jobs, and
// its Pods.
//
// In go a client of the cluster and the workload's name; out come the names and the Pods. It
// reads only, and judges nothing.
package offspring

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// chains are the kinds between a workload and its Pods, in the order of ownership.
var chains = map[string][]string{
	"Deployment": {"ReplicaSet", "Pod"}, "ReplicaSet": {"Pod"}, "ReplicationController": {"Pod"}, "StatefulSet": {"Pod"}, "DaemonSet": {"Pod"},
	"CronJob": {"Job", "Pod"}, "Job": {"Pod"},
}

// Family is a workload and what it owns.
type Family struct {
	// Names has "Kind/name" of all objects, the workload included.
	Names map[string]bool
	// Pods are the Pods of the workload, or the Pod that it is itself.
	Pods []*corev1.Pod
}

// Below returns the kinds that objects of a kind own, in the order of ownership.
func Below(kind string) []string { return chains[kind] }

// Has reports whether there may be Pods below an object of the kind.
func Has(kind string) bool { return kind == "Pod" || chains[kind] != nil }

// Of returns what an object owns; only the object itself for kinds that own nothing. It fails if the
// user may not list the owned kinds.
func Of(ctx context.Context, set kubernetes.Interface, namespace, kind, name string) (Family, error) {
	return In(set, namespace).Of(ctx, kind, name)
}

// Namespace caches the objects of one namespace of a cluster. It lists each kind once, when it is
// needed. Use In. It is not safe for concurrent use.
type Namespace struct {
	set   kubernetes.Interface
	name  string
	lists map[string][]metav1.Object
	// warnings is nil until they are listed.
	warnings []corev1.Event
}

// In returns a namespace with an empty cache.
func In(set kubernetes.Interface, name string) *Namespace {
	return &Namespace{set: set, name: name, lists: map[string][]metav1.Object{}}
}

// Of is the function Of with the cache of the namespace.
func (n *Namespace) Of(ctx context.Context, kind, name string) (Family, error) {
	out := Family{Names: map[string]bool{kind + "/" + name: true}}
	if kind == "Pod" {
		pod, err := n.set.CoreV1().Pods(n.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return out, err
		}
		out.Pods = append(out.Pods, pod)
		return out, nil
	}
	for _, below := range chains[kind] {
		objects, err := n.listed(ctx, below)
		if err != nil {
			return out, err
		}
		for _, obj := range objects {
			if !slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return out.Names[o.Kind+"/"+o.Name] }) {
				continue
			}
			out.Names[below+"/"+obj.GetName()] = true
			if pod, is := obj.(*corev1.Pod); is {
				out.Pods = append(out.Pods, pod)
			}
		}
	}
	return out, nil
}

// Warnings returns the Warnings of the namespace, as of the first call.
func (n *Namespace) Warnings(ctx context.Context) ([]corev1.Event, error) {
	if n.warnings != nil {
		return n.warnings, nil
	}
	list, err := n.set.CoreV1().Events(n.name).List(ctx, metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	if err != nil {
		return nil, err
	}
	n.warnings = append([]corev1.Event{}, list.Items...)
	return n.warnings, nil
}

// listed returns the objects of one of the kinds in chains, as of the first call.
func (n *Namespace) listed(ctx context.Context, kind string) ([]metav1.Object, error) {
	if objects, read := n.lists[kind]; read {
		return objects, nil
	}
	objects, err := listed(ctx, n.set, n.name, kind)
	if err == nil {
		n.lists[kind] = objects
	}
	return objects, err
}

// listed lists the objects of one of the kinds in chains.
func listed(ctx context.Context, set kubernetes.Interface, namespace, kind string) ([]metav1.Object, error) {
	var out []metav1.Object
	switch kind {
	case "ReplicaSet":
		list, err := set.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case "Job":
		list, err := set.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	default:
		list, err := set.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
