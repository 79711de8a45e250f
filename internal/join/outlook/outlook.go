package outlook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Outlook is what becomes of what the fleet runs in a cluster. All names are
// sorted.
type Outlook struct {
	// Going is what is removed, or would be if the cluster were not away, as in
	// "Deployment shop/web".
	Going []string
	// Kept is what stays although the rest goes, with why: it is data, or contains
	// what others have.
	Kept []string
	// Preserved is how many objects stay because of their policy.
	Preserved int
	// Away is why nothing can be removed; empty where it can.
	Away string
	// Unseen is why the member could not be read where it should have been: what
	// others have there is then not known.
	Unseen error
}

// Of returns the outlook for a cluster by its Works on the hub. inside, which may
// be nil, shows what else is in the member.
func Of(ctx context.Context, hub client.Reader, cluster *clusterv1alpha1.Cluster, inside Inside) (Outlook, error) {
	var works workv1alpha1.WorkList
	space := workv1alpha2.ExecutionNamespace(cluster.Name)
	if err := hub.List(ctx, &works, client.InNamespace(space)); err != nil {
		return Outlook{}, fmt.Errorf("list the works of cluster %s: %w", cluster.Name, err)
	}
	var out Outlook
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready != nil && !Reached(cluster) {
		out.Away, inside = cmp.Or(ready.Message, "it is not ready"), nil
	}
	l := &inspection{inside: inside, space: space, within: map[string][]string{}, works: map[string]*workv1alpha1.Work{}}
	for i := range works.Items {
		l.works[works.Items[i].Name] = &works.Items[i]
	}
	for i := range works.Items {
		l.data(ctx, &out, &works.Items[i])
	}
	for i := range works.Items {
		l.rest(ctx, &out, &works.Items[i])
	}
	slices.Sort(out.Going)
	slices.Sort(out.Kept)
	out.Unseen = l.unseen
	return out, nil
}

// Stays returns everything that stays although the rest can be removed.
func (o Outlook) Stays() []string {
	out := slices.Clone(o.Kept)
	switch {
	case o.Preserved == 1:
		out = append(out, "1 object that its policy preserves")
	case o.Preserved > 1:
		out = append(out, fmt.Sprintf("%d objects that their policy preserves", o.Preserved))
	}
	return out
}

// Reached reports whether the control plane, or the cluster's agent, removes what
// goes there. That is so for a cluster that is ready; for one that has just begun
// to answer again, though it does not count as ready; and for one in push mode
// that answers, but is not healthy. The Works of any other are let go without it
// when the cluster leaves.
func Reached(cluster *clusterv1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case ready == nil:
		return false
	case ready.Status == metav1.ConditionTrue, ready.Reason == clusterv1alpha1.ClusterAnswersAgainReason:
		return true
	default:
		return ready.Reason == clusterv1alpha1.ClusterNotReadyReason && cluster.Spec.SyncMode == clusterv1alpha1.Push
	}
}

// Objects returns the objects of a Work that are removed with it.
func Objects(work *workv1alpha1.Work) []string {
	if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || bringsVolumeClaim(work) {
		return nil
	}
	var out []string
	for i := range work.Spec.Workload.Manifests {
		if title := titleOf(manifestOf(work, i)); !others(work, i, title) {
			out = append(out, title)
		}
	}
	return out
}

// bringsVolumeClaim reports whether a Work has a volume claim, which stays in the
// cluster with its data.
func bringsVolumeClaim(work *workv1alpha1.Work) bool {
	_, claim := volumes.Carried(work)
	return claim && !volumes.Released(work)
}

// manifestOf decodes a manifest of a Work; empty where it cannot be decoded.
func manifestOf(work *workv1alpha1.Work, ordinal int) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	if json.Unmarshal(work.Spec.Workload.Manifests[ordinal].Raw, &out.Object) != nil || out.Object == nil {
		out.Object = map[string]any{}
	}
	return out
}

func titleOf(m *unstructured.Unstructured) string {
	return cmp.Or(m.GetKind(), "object") + strings.TrimRight(" "+strings.TrimPrefix(m.GetNamespace()+"/"+m.GetName(), "/"), " ")
}

// others reports whether the object of a manifest is not the Work's: it was in
// the cluster before and is used as it is, or was never sent, according to the
// Work's status. A Work without a status may have sent everything.
func others(work *workv1alpha1.Work, ordinal int, title string) bool {
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil {
		return false
	}
	sent := slices.ContainsFunc(work.Status.Applied, func(r workv1alpha1.AppliedHash) bool { return r.Ordinal == ordinal })
	return !sent || slices.ContainsFunc(strings.Split(applied.Message, "; "), func(text string) bool {
		return strings.HasPrefix(text, title+" ") && strings.HasSuffix(text, workv1alpha1.WorkAsItIsSuffix)
	})
}
