package unifiedauth

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// reach counts the Works in which an author has a word, by cluster and by the namespace
// that they are about: only there are his rights needed. It lives in memory, starts
// empty, and receives each change of a Work once.
type reach struct {
	mu     sync.Mutex
	counts map[string]map[string]int // by cluster and namespace; empty for all of the cluster
}

func newReach() *reach { return &reach{counts: map[string]map[string]int{}} }

// changed is called with what a Work was and what it is, either of which may be nil, and
// returns the namespaces that its cluster is reached from for the first time, or no
// more; among them the empty one if that holds for all of the cluster.
func (r *reach) changed(was, is *workv1alpha1.Work) (cluster string, namespaces []string) {
	before, now := about(was), about(is)
	work := is
	if work == nil {
		work = was
	}
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(work.Namespace)
	if !ok || maps.Equal(before, now) {
		return cluster, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts[cluster]
	if counts == nil {
		counts = map[string]int{}
		r.counts[cluster] = counts
	}
	for namespace := range now {
		if !before[namespace] {
			if counts[namespace]++; counts[namespace] == 1 {
				namespaces = append(namespaces, namespace)
			}
		}
	}
	for namespace := range before {
		if !now[namespace] {
			if counts[namespace]--; counts[namespace] <= 0 {
				delete(counts, namespace)
				namespaces = append(namespaces, namespace)
			}
		}
	}
	if len(counts) == 0 {
		delete(r.counts, cluster)
	}
	slices.Sort(namespaces)
	return cluster, namespaces
}

// has reports whether a cluster is reached from a namespace; with none, from any.
func (r *reach) has(cluster, namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[cluster][namespace] > 0
}

// clusters are those that are reached from a namespace; with none, from any.
func (r *reach) clusters(namespace string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{}
	for cluster, counts := range r.counts {
		if counts[namespace] > 0 {
			out[cluster] = true
		}
	}
	return out
}

// namespaces are those that a cluster is reached from.
func (r *reach) namespaces(cluster string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.counts[cluster]))
}

// about returns the namespaces that a Work is about, and the empty one, if an author has
// a word in it. What a binding made is about its namespace; only manifests that somebody
// wrote by hand are read.
func about(work *workv1alpha1.Work) map[string]bool {
	if work == nil || work.Annotations[workv1alpha2.AppliedByAnnotation] == "" {
		return nil
	}
	out := map[string]bool{"": true}
	if namespace := work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey]; namespace != "" {
		out[namespace] = true
		return out
	}
	for i := range work.Spec.Workload.Manifests {
		var obj struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		if json.Unmarshal(work.Spec.Workload.Manifests[i].Raw, &obj) == nil && obj.Metadata.Namespace != "" {
			out[obj.Metadata.Namespace] = true
		}
	}
	return out
}
