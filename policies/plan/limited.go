package plan

import (
	"slices"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Leaving returns those of LeaveFirst that have a Work still, sorted.
func Leaving(spec *workv1alpha2.ResourceBindingSpec, works []*workv1alpha1.Work) []string {
	return slices.DeleteFunc(LeaveFirst(spec), func(cluster string) bool {
		return !slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool { return w.Namespace == workv1alpha2.ExecutionNamespace(cluster) })
	})
}

// Limited returns in with the replicas that clusters may run already while others, which must be left first, have their copies, and the
// clusters that get more once those are gone. What is divided runs no more in all than the template asks for: of what a
// cluster grows by, it gets what the copies that leave do not run. Clusters that run it already are not limited where each runs
// all of it. What must not start yet is not looked at here.
func Limited(in WorksInput, works []*workv1alpha1.Work) (WorksInput, []string) {
	spec := in.Binding.BindingSpec()
	leaving := Leaving(spec, works)
	if len(leaving) == 0 || !placement.IsWorkload(spec) || placement.InSets(spec) || placement.Whole(spec) {
		return in, nil
	}
	room := int32(0)
	for _, t := range spec.Clusters {
		room += t.Replicas
	}
	for _, w := range works {
		if cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); slices.Contains(leaving, cluster) {
			n, known := in.runs(w)
			if !known {
				n = room // it may be all
			}
			room -= n
		}
	}
	limited := in.Binding.DeepCopyObject().(workv1alpha2.Binding)
	targets := limited.BindingSpec().Clusters
	lack := make([]replicas.Share, len(targets))
	parts := splitCompletions(spec, in.Template) != nil
	for i := range targets {
		t := &targets[i]
		w := workIn(works, t.Name)
		if w == nil {
			continue
		}
		if parts { // what it has to complete goes by its replicas, and cannot be changed
			in.stands = append(in.stands, t.Name)
		}
		if n, known := in.runs(w); known && n < t.Replicas {
			lack[i] = replicas.Share{Name: t.Name, Weight: int64(t.Replicas - n)}
			t.Replicas = n
		}
		room -= t.Replicas
	}
	more := among(lack, room, replicas.OrderOf(string(spec.Resource.UID)))
	var waits []string
	for i := range targets {
		if targets[i].Replicas += more[i]; int64(more[i]) < lack[i].Weight {
			waits = append(waits, targets[i].Name)
		}
	}
	in.Binding = limited
	slices.Sort(waits)
	return in, waits
}

// among divides room among those who lack replicas: none gets more than it lacks.
func among(lack []replicas.Share, room int32, order replicas.Order) []int32 {
	total, out := int64(0), make([]int32, len(lack))
	for i := range lack {
		total += lack[i].Weight
	}
	if int64(room) < total {
		replicas.Webster(max(room, 0), lack, order)
	}
	for i := range lack {
		out[i] = int32(lack[i].Weight)
		if int64(room) < total {
			out[i] = min(out[i], lack[i].Count)
		}
	}
	return out
}
