package chaos

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// identity is the label of a Work and of what it brings that has its permanent id, and
// managed selects what comes from Works.
const (
	identity = "work.karmada.io/permanent-id"
	managed  = "karmada.io/managed=true"
)

// end reads how all of it stands.
func (w *world) end(ctx context.Context) (history.End, error) {
	out := history.End{Hub: map[history.Object]history.Template{}, Policies: map[string]int{}, Placed: map[history.Object]map[string]int{}}
	hub, err := w.dynamicHub()
	if err != nil {
		return out, err
	}
	for _, gvr := range resources {
		err := each(ctx, hub, gvr, namespace, "", func(obj *unstructured.Unstructured) {
			if version, ok := versionOf(obj); ok {
				out.Hub[objectOf(obj)] = history.Template{Version: version, Replicas: replicasOf(obj, "spec", "replicas"), Digest: digest(obj)}
			}
		})
		if err != nil {
			return out, err
		}
	}
	policies := schema.GroupVersionResource{Group: "policy.karmada.io", Version: "v1alpha1", Resource: "propagationpolicies"}
	err = each(ctx, hub, policies, namespace, "", func(obj *unstructured.Unstructured) {
		out.Policies[obj.GetName()], _ = versionOf(obj)
	})
	if err != nil {
		return out, err
	}
	err = each(ctx, hub, bindings, namespace, "", func(obj *unstructured.Unstructured) {
		object, clusters := division(obj)
		out.Placed[object] = clusters
	})
	if err != nil {
		return out, err
	}
	brought := map[schema.GroupVersionResource]bool{}
	for _, gvr := range resources {
		brought[gvr] = true
	}
	for _, cluster := range clusters {
		works, err := works(ctx, hub, cluster, brought)
		if err != nil {
			return out, err
		}
		out.Works = append(out.Works, works...)
	}
	for cluster, member := range w.members {
		for gvr := range brought {
			err := each(ctx, member, gvr, "", managed, func(obj *unstructured.Unstructured) {
				out.Members = append(out.Members, copyOf(cluster, obj, obj.GetLabels()[identity]))
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return out, err
			}
		}
	}
	return out, nil
}

func each(ctx context.Context, from dynamic.Interface, gvr schema.GroupVersionResource, namespace, selector string, do func(*unstructured.Unstructured)) error {
	list, err := from.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
	return nil
}

// works returns what a cluster's Works hold, and notes of which kinds it is.
func works(ctx context.Context, hub dynamic.Interface, cluster string, kinds map[schema.GroupVersionResource]bool) ([]history.Copy, error) {
	var out []history.Copy
	all := schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha1", Resource: "works"}
	err := each(ctx, hub, all, "karmada-es-"+cluster, "", func(work *unstructured.Unstructured) {
		manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
		for _, m := range manifests {
			fields, _ := m.(map[string]any)
			obj := &unstructured.Unstructured{Object: fields}
			gvr, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
			kinds[gvr] = true
			out = append(out, copyOf(cluster, obj, work.GetLabels()[identity]))
		}
	})
	return out, err
}

func copyOf(cluster string, obj *unstructured.Unstructured, id string) history.Copy {
	out := history.Copy{Cluster: cluster, Object: objectOf(obj), ID: id}
	if version, ok := versionOf(obj); ok && strings.HasPrefix(obj.GetName(), "user") {
		out.Version, out.Digest, out.Replicas = version, digest(obj), replicasOf(obj, "spec", "replicas")
	}
	return out
}
