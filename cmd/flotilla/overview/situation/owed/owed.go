// Package owed finds what clusters have yet to do according to Works, which no binding shows.
//
// In go Works, where templates are placed, and which clusters are silent; out comes, for each cluster, what is still to be
// removed or applied there, why, and what to do, in words. It reads nothing and writes nothing.
package owed

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// settling is how long a removal may take before it is reported.
const settling = 10 * time.Second

// Problem is what a cluster has yet to do, and what to do about that.
type Problem struct{ Cluster, Message, Next string }

// Placed returns the clusters that a template is placed in, and those of them in which it is healthy.
type Placed func(inventory.ID) (in, healthy []string)

// outstanding is what a cluster has yet to do according to Works, which no binding shows.
type outstanding struct {
	// removals are objects that are to be deleted, and arrivals those whose latest version
	// has not been applied yet, as far as is known.
	removals, arrivals []string
	since              time.Time // when the first removal was requested
	going              bool      // a removal has begun, however short ago
	kept               string    // what blocks one of the removals, from its Work; empty if nothing does
	// last is what is kept as it may be the last copy: its template is to be mended elsewhere.
	last *inventory.ID
}

// Owed has what is outstanding, by cluster.
type Owed map[string]*outstanding

// of returns what is outstanding in a cluster.
func (o Owed) of(cluster string) *outstanding {
	if o[cluster] == nil {
		o[cluster] = &outstanding{}
	}
	return o[cluster]
}

// Leaves adds a Work that is being deleted, if that takes long or is known to be blocked, and what it made is not to stay after all.
func (o Owed) Leaves(w *workv1alpha1.Work, cluster string, now time.Time) {
	if staleremoval.Recalled(w) {
		return
	}
	o.of(cluster).going = true
	asked, blocked := w.DeletionTimestamp, apimeta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if asked == nil || now.Sub(asked.Time) < settling && !isKept(blocked) {
		return
	}
	of := o.of(cluster)
	if of.removals = append(of.removals, titles(w)...); of.since.IsZero() || asked.Time.Before(of.since) {
		of.since = asked.Time
	}
	if blocked != nil && (of.kept == "" || blocked.Message < of.kept) {
		of.kept, of.last = staleremoval.Shown(blocked.Message), nil
		if blocked.Reason == workv1alpha1.WorkLastCopyReason && len(w.Spec.Workload.Manifests) > 0 {
			if id, _, read := inventory.OfManifest(w.Spec.Workload.Manifests[0].Raw); read {
				of.last = &id
			}
		}
	}
}

// isKept reports whether a Work says what keeps it from being gone, other than the time that any deletion takes.
func isKept(blocked *metav1.Condition) bool {
	if blocked == nil || blocked.Status != metav1.ConditionTrue {
		return false
	}
	return blocked.Reason != workv1alpha1.WorkTerminatingReason || cascade.SaysWhat(blocked.Message)
}

// unblock returns what keeps a removal, and what to do. An agent does not know where else the template is, which placed returns.
func (of *outstanding) unblock(placed Placed) (kept, next string) {
	if of.last == nil {
		return of.kept, "put right in the cluster what keeps it: then it goes by itself"
	}
	if in, healthy := placed(*of.last); len(in) > 0 && len(healthy) == 0 {
		return staleremoval.Lasting(wording.Title(*of.last), in), wording.Explains(*of.last)
	}
	return of.kept, wording.Explains(*of.last)
}

// Arrives adds a Work whose latest version has yet to be applied.
func (o Owed) Arrives(w *workv1alpha1.Work, cluster string) {
	if rollup.Behind(w) {
		of := o.of(cluster)
		of.arrivals = append(of.arrivals, titles(w)...)
	}
}

// titles returns the kinds and names of the objects in a Work, as in "Deployment shop/web".
func titles(w *workv1alpha1.Work) []string {
	var out []string
	for i := range w.Spec.Workload.Manifests {
		obj := &unstructured.Unstructured{}
		if obj.UnmarshalJSON(w.Spec.Workload.Manifests[i].Raw) == nil {
			out = append(out, rollup.ObjectName(obj))
		}
	}
	return out
}

// Problems returns one problem for each cluster in which something is outstanding.
func (o Owed) Problems(silent rollup.Silences, placed Placed, now time.Time) []Problem {
	var out []Problem
	for _, cluster := range slices.Sorted(maps.Keys(o)) {
		of := o[cluster]
		next := "see what keeps it: flotilla get works -n karmada-es-" + cluster
		if _, away := silent[cluster]; away {
			next = "it is done once the cluster is ready again"
			of.kept = ""
		}
		removals, free := wording.Some(of.removals), next
		if of.kept != "" {
			kept, next := of.unblock(placed)
			removals, free = strings.TrimPrefix(removals+"; ", of.removals[0]+"; ")+kept, next
		}
		add := func(titles []string, what, list, next string) {
			if len(titles) > 0 {
				out = append(out, Problem{cluster, fmt.Sprintf("%d %s %s: %s", len(titles), objects(len(titles)), what, list), next})
			}
		}
		add(of.removals, "still to be removed there, asked for "+duration.HumanDuration(max(now.Sub(of.since), 0))+" ago", removals, free)
		add(of.arrivals, "not known to be there in the latest version", wording.Some(of.arrivals), next)
	}
	return out
}

func objects(n int) string {
	if n == 1 {
		return "object"
	}
	return "objects"
}

// Removing reports whether a removal has begun in a cluster, however short ago.
func (o Owed) Removing(cluster string) bool { return o[cluster] != nil && o[cluster].going }
