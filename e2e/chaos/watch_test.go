package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// resources are the kinds that users write.
var resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Group: "apps", Version: "v1", Resource: "deployments"},
}

// follow keeps everything that a member shows of users' objects, until ctx ends. The
// members are not disturbed, so that nothing is missed.
func follow(ctx context.Context, cluster string, member dynamic.Interface, gvr schema.GroupVersionResource, to *journal) error {
	since := "0"
	for ctx.Err() == nil {
		w, err := member.Resource(gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch %s in %s: %w", gvr.Resource, cluster, err)
		}
		for e := range w.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if ctx.Err() != nil {
				return nil
			}
			if !ok || e.Type == watch.Error {
				return fmt.Errorf("watch %s in %s: %v", gvr.Resource, cluster, e.Object)
			}
			since = obj.GetResourceVersion()
			version, err := strconv.Atoi(obj.GetAnnotations()[versionKey])
			if e.Type == watch.Bookmark || err != nil {
				continue // not a user's
			}
			to.saw(history.Sight{
				Cluster: cluster, Object: history.Object(obj.GetName()), Version: version, UID: string(obj.GetUID()),
				Deleted: e.Type == watch.Deleted, At: time.Now(),
			})
		}
	}
	return nil
}

// end reads how all of it stands.
func (w *world) end(ctx context.Context) (history.End, error) {
	out := history.End{Works: map[string]map[history.Object]int{}, Members: map[string]map[history.Object]int{}, Replicas: map[history.Object]history.Replicas{}}
	config, err := w.Hub.Config()
	if err != nil {
		return out, err
	}
	hub, err := dynamic.NewForConfig(config)
	if err != nil {
		return out, err
	}
	read := func(from dynamic.Interface, each func(obj *unstructured.Unstructured)) (map[history.Object]int, error) {
		versions := map[history.Object]int{}
		for _, gvr := range resources {
			list, err := from.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				if version, err := strconv.Atoi(list.Items[i].GetAnnotations()[versionKey]); err == nil {
					versions[history.Object(list.Items[i].GetName())] = version
					each(&list.Items[i])
				}
			}
		}
		return versions, nil
	}
	count := func(add func(r *history.Replicas, n int)) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			if n, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); found {
				r := out.Replicas[history.Object(obj.GetName())]
				add(&r, int(n))
				out.Replicas[history.Object(obj.GetName())] = r
			}
		}
	}
	if out.Hub, err = read(hub, count(func(r *history.Replicas, n int) { r.Template = n })); err != nil {
		return out, err
	}
	if out.Placed, err = placed(ctx, hub, out.Hub); err != nil {
		return out, err
	}
	for name, member := range w.members {
		if out.Members[name], err = read(member, count(func(r *history.Replicas, n int) { r.Sum += n })); err != nil {
			return out, err
		}
		if out.Works[name], err = works(ctx, hub, name); err != nil {
			return out, err
		}
	}
	return out, nil
}

// placed returns what each cluster is to have, by the bindings.
func placed(ctx context.Context, hub dynamic.Interface, versions map[history.Object]int) (map[string]map[history.Object]int, error) {
	list, err := hub.Resource(schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "resourcebindings"}).
		Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]map[history.Object]int{}
	for _, name := range clusters {
		out[name] = map[history.Object]int{}
	}
	for _, item := range list.Items {
		name, _, _ := unstructured.NestedString(item.Object, "spec", "resource", "name")
		version, there := versions[history.Object(name)]
		targets, _, _ := unstructured.NestedSlice(item.Object, "spec", "clusters")
		for _, target := range targets {
			fields, _ := target.(map[string]any)
			if cluster, _ := fields["name"].(string); there && out[cluster] != nil {
				out[cluster][history.Object(name)] = version
			}
		}
	}
	return out, nil
}

// works returns what a cluster's Works hold of users' objects.
func works(ctx context.Context, hub dynamic.Interface, cluster string) (map[history.Object]int, error) {
	list, err := hub.Resource(schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha1", Resource: "works"}).
		Namespace("karmada-es-"+cluster).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[history.Object]int{}
	for _, item := range list.Items {
		manifests, _, _ := unstructured.NestedSlice(item.Object, "spec", "workload", "manifests")
		for _, m := range manifests {
			fields, _ := m.(map[string]any)
			obj := unstructured.Unstructured{Object: fields}
			if version, err := strconv.Atoi(obj.GetAnnotations()[versionKey]); err == nil && obj.GetNamespace() == namespace {
				out[history.Object(obj.GetName())] = version
			}
		}
	}
	return out, nil
}
