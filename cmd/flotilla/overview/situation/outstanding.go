package situation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/policies/removal"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

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

// owed has what is outstanding, by cluster.
type owed map[string]*outstanding

// of returns what is outstanding in a cluster.
func (o owed) of(cluster string) *outstanding {
	if o[cluster] == nil {
		o[cluster] = &outstanding{}
	}
	return o[cluster]
}

// leaves adds a Work that is being deleted, if that takes long or is known to be blocked.
func (o owed) leaves(w *workv1alpha1.Work, cluster string, now time.Time) {
	o.of(cluster).going = true
	asked, blocked := w.DeletionTimestamp, apimeta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if asked == nil || now.Sub(asked.Time) < settling && (blocked == nil || blocked.Status != metav1.ConditionTrue) {
		return
	}
	of := o.of(cluster)
	if of.removals = append(of.removals, titles(w)...); of.since.IsZero() || asked.Time.Before(of.since) {
		of.since = asked.Time
	}
	if blocked != nil && (of.kept == "" || blocked.Message < of.kept) {
		of.kept, of.last = removal.Told(blocked.Message), nil
		if blocked.Reason == workv1alpha1.WorkLastCopyReason && len(w.Spec.Workload.Manifests) > 0 {
			if id, _, read := inventory.OfManifest(w.Spec.Workload.Manifests[0].Raw); read {
				of.last = &id
			}
		}
	}
}

// unblock returns what keeps a removal, and what to do. An agent does not know where else the template is, of which reach tells.
func (of *outstanding) unblock(reach map[inventory.ID]*reach) (kept, next string) {
	if of.last == nil {
		return of.kept, "put right in the cluster what keeps it: then it goes by itself"
	}
	if at := reach[*of.last]; at != nil && len(at.clusters) > 0 && len(at.ready) == 0 {
		return removal.Lasting(titleOf(*of.last), at.clusters), explains(*of.last)
	}
	return of.kept, explains(*of.last)
}

// arrives adds a Work whose latest version has yet to be applied.
func (o owed) arrives(w *workv1alpha1.Work, cluster string) {
	if rollup.Behind(w) {
		of := o.of(cluster)
		of.arrivals = append(of.arrivals, titles(w)...)
	}
}

// BoundToNothing selects the Works that were not made by a binding.
var BoundToNothing = client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(
	without(workv1alpha2.ResourceBindingPermanentIDLabel), without(workv1alpha2.ClusterResourceBindingPermanentIDLabel),
)}

func without(label string) labels.Requirement {
	out, err := labels.NewRequirement(label, selection.DoesNotExist, nil)
	if err != nil {
		panic(err) // it is a constant
	}
	return *out
}

// Unbound adds to a Survey a Work that was not made by a binding, if it fails or is for a Namespace, which all clusters get.
func Unbound(s *Survey, w *workv1alpha1.Work) {
	cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	if !ok || w.DeletionTimestamp != nil || !BoundToNothing.Matches(labels.Set(w.Labels)) {
		return
	}
	if _, away := s.silent[cluster]; !away {
		s.problem(failing(w, cluster, s.held))
	}
	for _, m := range w.Spec.Workload.Manifests {
		if id, _, _ := inventory.OfManifest(m.Raw); isNamespace(id) {
			there := cmp.Or(s.reach[id], &reach{everywhere: true})
			s.reach[id], there.clusters = there, append(there.clusters, cluster)
			if rollup.NamespacePart(cluster, w, s.silent).State == rollup.Healthy {
				there.ready = append(there.ready, cluster)
			}
		}
	}
}

// failing returns the problem of a Work that fails and was not made by a binding; the zero value means none.
func failing(w *workv1alpha1.Work, cluster string, held bool) Problem {
	state, message := rollup.OfWork(w)
	if state != rollup.Failed {
		return Problem{}
	}
	out := Problem{State: Failed, Kind: workv1alpha1.ResourceKindWork, Namespace: w.Namespace, Name: w.Name, Clusters: []string{cluster},
		Message: message, Next: "flotilla describe work " + w.Name + inNamespace(w.Namespace)}
	if held && strings.Contains(message, workv1alpha1.WorkHeldPrefix) {
		out.Next = remark.ResumeNext
	}
	return out
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

// problems returns one problem for each cluster in which something is outstanding.
func (o owed) problems(silent rollup.Silences, reach map[inventory.ID]*reach, now time.Time) []Problem {
	var out []Problem
	for _, cluster := range slices.Sorted(maps.Keys(o)) {
		of := o[cluster]
		next := "see what keeps it: flotilla get works -n karmada-es-" + cluster
		if _, away := silent[cluster]; away {
			next = "it is done once the cluster answers"
			of.kept = ""
		}
		removals, free := some(of.removals), next
		if of.kept != "" {
			kept, next := of.unblock(reach)
			removals, free = strings.TrimPrefix(removals+"; ", of.removals[0]+"; ")+kept, next
		}
		add := func(titles []string, what, list, next string) {
			if len(titles) > 0 {
				out = append(out, Problem{State: Progressing, Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster, Next: next,
					Message: fmt.Sprintf("%d %s %s: %s", len(titles), plural(len(titles), "object", "objects"), what, list)})
			}
		}
		add(of.removals, "still to be removed there, asked for "+duration.HumanDuration(max(now.Sub(of.since), 0))+" ago", removals, free)
		add(of.arrivals, "not known to be there in the latest version", some(of.arrivals), next)
	}
	return out
}

// some lists the first of several names.
func some(titles []string) string {
	slices.Sort(titles)
	text := strings.Join(titles[:min(len(titles), mostNamed)], ", ")
	if len(titles) > mostNamed {
		text += " …"
	}
	return text
}
