package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-io/flotilla/e2e/chaos/history"
)

// resources are the kinds that users write.
var resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, deployments,
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	clusterKind = schema.GroupVersionResource{Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters"}
	bindings    = schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "resourcebindings"}
)

func nameOf(kind, namespace, name string) history.Object {
	if namespace == "" {
		return history.Object(kind + " " + name)
	}
	return history.Object(kind + " " + namespace + "/" + name)
}

func objectOf(obj *unstructured.Unstructured) history.Object {
	return nameOf(obj.GetKind(), obj.GetNamespace(), obj.GetName())
}

// versionOf returns the version of a user's object, and false for others.
func versionOf(obj *unstructured.Unstructured) (int, bool) {
	version, err := strconv.Atoi(obj.GetAnnotations()[versionKey])
	return version, err == nil
}

// digest is that of what a user writes of an object, but for its replicas: what the
// fleet and servers add is not in it.
func digest(obj *unstructured.Unstructured) string {
	content := map[string]any{"data": obj.Object["data"], "place": obj.GetLabels()["place"]}
	for _, path := range [][]string{{"spec", "selector"}, {"spec", "strategy"}, {"spec", "template", "metadata", "labels"}} {
		content[fmt.Sprint(path)], _, _ = unstructured.NestedFieldNoCopy(obj.Object, path...)
	}
	containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
	for i := range containers {
		c, _ := containers[i].(map[string]any)
		content[fmt.Sprint("container ", i)] = []any{c["name"], c["image"]}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:12]
}

func replicasOf(obj *unstructured.Unstructured, path ...string) int {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return int(n)
}

// follow keeps everything that a member shows of users' objects, until ctx ends, and
// has somebody look at them. The members are not disturbed, so that nothing is missed.
func (w *world) follow(ctx context.Context, cluster string, gvr schema.GroupVersionResource, look lookers) error {
	since := "0"
	for ctx.Err() == nil {
		events, err := w.members[cluster].Resource(gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: since, AllowWatchBookmarks: true})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watch %s in %s: %w", gvr.Resource, cluster, err)
		}
		for e := range events.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if ctx.Err() != nil {
				return nil
			}
			if !ok || e.Type == watch.Error {
				return fmt.Errorf("watch %s in %s: %v", gvr.Resource, cluster, e.Object)
			}
			since = obj.GetResourceVersion()
			version, ok := versionOf(obj)
			if e.Type == watch.Bookmark || !ok {
				continue // not a user's
			}
			gone := e.Type == watch.Deleted
			w.log.saw(history.Observation{Cluster: cluster, Object: objectOf(obj), Version: version, UID: string(obj.GetUID()), Deleted: gone, At: time.Now()})
			if gone || gvr == deployments {
				look.at(target{gvr: gvr, kind: obj.GetKind(), name: obj.GetName()})
			}
		}
	}
	return nil
}

// target is an object that is to be looked at.
type target struct {
	gvr        schema.GroupVersionResource
	kind, name string
}

// lookers are several, each of which has objects of its own.
type lookers []*looker

func newLookers(count int) lookers {
	var out lookers
	for range count {
		out = append(out, &looker{targets: map[target]bool{}, woken: make(chan struct{}, 1)})
	}
	return out
}

// at has whoever has the object look at it.
func (l lookers) at(t target) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(t.kind + t.name))
	l[int(sum.Sum32())%len(l)].at(t)
}

// looker remembers what is to be looked at.
type looker struct {
	mu      sync.Mutex
	targets map[target]bool
	woken   chan struct{}
}

func (l *looker) at(t target) {
	l.mu.Lock()
	l.targets[t] = true
	l.mu.Unlock()
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// take returns what is to be looked at now.
func (l *looker) take() []target {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []target
	for t := range l.targets {
		out = append(out, t)
	}
	clear(l.targets)
	return out
}

// look looks at objects in all members whenever one has changed, until ctx ends.
func (w *world) observe(ctx context.Context, l *looker) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.woken:
		}
		for _, t := range l.take() {
			snapshot, err := w.snapshot(ctx, t)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("look at %s: %w", t.name, err)
			}
			w.log.observed(snapshot)
		}
	}
}

// snapshot reads an object in all members until two readings are the same: all of what
// was read was so between them.
func (w *world) snapshot(ctx context.Context, t target) (history.Snapshot, error) {
	begun := time.Now()
	before, _, err := w.collect(ctx, t)
	for err == nil {
		var now map[string]string
		var observed map[string]history.ClusterState
		if now, observed, err = w.collect(ctx, t); err == nil && maps.Equal(before, now) {
			return history.Snapshot{Object: nameOf(t.kind, namespace, t.name), Begun: begun, At: time.Now(), ByCluster: observed}, nil
		}
		before, begun = now, time.Now()
	}
	return history.Snapshot{}, err
}

// collect reads an object in all members: what there is, and its revisions.
func (w *world) collect(ctx context.Context, t target) (map[string]string, map[string]history.ClusterState, error) {
	revisions, observed := map[string]string{}, map[string]history.ClusterState{}
	for cluster, member := range w.members {
		obj, err := member.Resource(t.gvr).Namespace(namespace).Get(ctx, t.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		version, _ := versionOf(obj)
		h := history.ClusterState{Version: version, Wanted: 1, Ready: 1}
		if t.gvr == deployments {
			h.Wanted, h.Ready = replicasOf(obj, "spec", "replicas"), replicasOf(obj, "status", "readyReplicas")
		}
		revisions[cluster], observed[cluster] = string(obj.GetUID())+" "+obj.GetResourceVersion(), h
	}
	return revisions, observed, nil
}

// followBindings keeps how the control plane divides replicas, until ctx ends.
func (w *world) followBindings(ctx context.Context) error {
	return w.followHub(ctx, bindings, namespace, func(obj *unstructured.Unstructured, gone bool) {
		if object, clusters := division(obj); len(clusters) > 0 && !gone && replicasOf(obj, "spec", "replicas") > 0 {
			w.log.dividedInto(history.Division{Object: object, Replicas: replicasOf(obj, "spec", "replicas"), Clusters: clusters})
		}
	})
}

// followClusters keeps when clusters are tainted, and when that ends, until ctx ends.
func (w *world) followClusters(ctx context.Context) error {
	was := map[string]bool{}
	return w.followHub(ctx, clusterKind, "", func(obj *unstructured.Unstructured, gone bool) {
		name := obj.GetName()
		taints, _, _ := unstructured.NestedSlice(obj.Object, "spec", "taints")
		is := len(taints) > 0 || gone
		if is || was[name] {
			w.log.away(history.Absence{Cluster: name, At: time.Now()})
		}
		was[name] = is
	})
}

// followHub does something with all that a kind shows on the control plane, until ctx
// ends. It is killed again and again: the watch goes on where it was.
func (w *world) followHub(ctx context.Context, gvr schema.GroupVersionResource, namespace string, do func(obj *unstructured.Unstructured, gone bool)) error {
	hub, err := w.dynamicHub()
	if err != nil {
		return err
	}
	since := "0"
	for ctx.Err() == nil {
		events, err := hub.Resource(gvr).Namespace(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: since})
		if err != nil {
			if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
				since = "0"
			}
			pause(ctx, 200*time.Millisecond)
			continue
		}
		for e := range events.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error {
				since = "0"
				break
			}
			since = obj.GetResourceVersion()
			do(obj, e.Type == watch.Deleted)
		}
		events.Stop()
	}
	return nil
}

// division is where a binding places what, with how many replicas each.
func division(binding *unstructured.Unstructured) (history.Object, map[string]int) {
	of := func(key string) string {
		value, _, _ := unstructured.NestedString(binding.Object, "spec", "resource", key)
		return value
	}
	out := map[string]int{}
	targets, _, _ := unstructured.NestedSlice(binding.Object, "spec", "clusters")
	for _, t := range targets {
		fields, _ := t.(map[string]any)
		name, _ := fields["name"].(string)
		replicas, _ := fields["replicas"].(int64)
		out[name] = int(replicas)
	}
	return nameOf(of("kind"), of("namespace"), of("name")), out
}

func (w *world) dynamicHub() (dynamic.Interface, error) {
	config, err := w.config()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}
