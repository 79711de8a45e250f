package join

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// Going tells what would be removed from a cluster that leaves, by what the hub asks
// for there, each object by its name, and what would stay since the cluster is not ready.
// It tells nothing where there is nothing.
func Going(ctx context.Context, hub client.Reader, cluster *clusterv1alpha1.Cluster, report func(Step)) error {
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster.Name))); err != nil {
		return fmt.Errorf("list the works of cluster %s: %w", cluster.Name, err)
	}
	var going []string
	staying, claims := 0, 0
	for i := range works.Items {
		spec := &works.Items[i].Spec
		if bringsVolumeClaim(&works.Items[i]) {
			claims++
			continue
		}
		if ptr.Deref(spec.PreserveResourcesOnDeletion, false) {
			staying += len(spec.Workload.Manifests)
			continue
		}
		going = append(going, objectsOf(&works.Items[i])...)
	}
	slices.Sort(going)
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	switch {
	case len(going) == 0:
	case ready != nil && ready.Status != metav1.ConditionTrue:
		what := fmt.Sprintf("%s that the fleet runs there, since the cluster is not ready: %s", counted(len(going), "object"), ready.Message)
		report(Step{Side: "member", Verb: "would leave", Object: what})
	default:
		report(Step{Side: "member", Verb: "would remove", Object: counted(len(going), "object") + " that the fleet runs there"})
		for _, object := range going {
			report(Step{Side: "member", Verb: "would remove", Object: object})
		}
	}
	if claims > 0 {
		report(Step{Side: "member", Verb: "would leave", Object: counted(claims, "PersistentVolumeClaim") + ", with " + its(claims) + " data"})
	}
	if staying > 0 {
		report(Step{Side: "member", Verb: "would leave", Object: counted(staying, "object") + " that " + its(staying) + " policy preserves"})
	}
	return nil
}

// counted is "1 object", and "2 objects".
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func its(n int) string {
	if n == 1 {
		return "its"
	}
	return "their"
}

// bringsVolumeClaim reports whether a Work has brought a claim, which stays in the cluster with its data.
func bringsVolumeClaim(work *workv1alpha1.Work) bool {
	_, claim := volumes.Carried(work)
	return claim && !volumes.Released(work)
}

// objectsOf names what a Work has a cluster run, and is to go with it.
func objectsOf(work *workv1alpha1.Work) []string {
	if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || bringsVolumeClaim(work) {
		return nil
	}
	var out []string
	for i, m := range work.Spec.Workload.Manifests {
		is, title := metav1.PartialObjectMetadata{}, "object"
		if json.Unmarshal(m.Raw, &is) == nil {
			title = cmp.Or(is.Kind, title) + " " + strings.TrimPrefix(is.Namespace+"/"+is.Name, "/")
		}
		if !others(work, i, title) {
			out = append(out, title)
		}
	}
	return out
}

// others reports whether the object of a manifest is not the Work's in its cluster: it was
// there before and is used as it is, or the Work was judged and has never sent it. A Work that
// nobody has judged may have sent all.
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
