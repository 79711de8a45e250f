package situation

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// outstanding returns one problem for each cluster in which something is still to be removed or applied.
func outstanding(s *Survey) []Problem {
	placed := func(id inventory.ID) (in, healthy []string) {
		if at := s.reach[id]; at != nil {
			return at.clusters, at.ready
		}
		return nil, nil
	}
	var out []Problem
	for _, p := range s.owed.Problems(s.silent, placed, s.now) {
		out = append(out, Problem{State: Progressing, Kind: clusterv1alpha1.ResourceKindCluster, Name: p.Cluster, Message: p.Message, Next: p.Next})
	}
	return out
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
		Message: message, Next: "flotilla describe work " + w.Name + wording.InNamespace(w.Namespace)}
	if held && strings.Contains(message, workv1alpha1.WorkHeldPrefix) {
		out.Next = remark.ResumeNext
	}
	return out
}
