package deschedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

// Short is a cluster that has not all replicas of a binding ready.
type Short struct {
	Cluster  string
	Assigned int32
	// Ready of them; negative: the cluster does not say.
	Ready int32
}

// Candidates returns the clusters in which replicas of b may wait for a node, sorted by
// name. There are none if b is not the scheduler's to decide, its replicas are not divided
// by room, or a decision about it is due anyway or failed. Where it has come to its end, nothing waits.
func Candidates(b workv1alpha2.Binding, clusters placement.Snapshot, scheduler string) []Short {
	spec := b.BindingSpec()
	record, decided := placement.RecordOf(b)
	if !placement.Mine(b, scheduler) || !decided || !record.Succeeded() || record.Stays != nil ||
		spec.Placement == nil || !replicas.Overflows(spec.Placement.ReplicaScheduling) || !placement.IsWorkload(spec) || placement.InSets(spec) {
		return nil
	}
	if _, due := placement.Due(b, clusters); due {
		return nil
	}
	var out []Short
	done := failover.Finished(b)
	for _, t := range spec.Clusters {
		if is := (Short{t.Name, t.Replicas, readyIn(b, t.Name)}); is.Ready < is.Assigned && !slices.Contains(done, t.Name) {
			out = append(out, is)
		}
	}
	slices.SortFunc(out, func(a, b Short) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// readyIn returns how many replicas a cluster says are ready; negative if it does not.
func readyIn(b workv1alpha2.Binding, cluster string) int32 {
	for i := range b.BindingStatus().AggregatedStatus {
		item := &b.BindingStatus().AggregatedStatus[i]
		if item.ClusterName != cluster || item.Status == nil {
			continue
		}
		var status struct {
			ReadyReplicas *int32 `json:"readyReplicas"`
			Replicas      *int32 `json:"replicas"`
		}
		switch err := json.Unmarshal(item.Status.Raw, &status); {
		case err != nil:
			return -1
		case status.ReadyReplicas != nil:
			return *status.ReadyReplicas
		case status.Replicas != nil: // a count of nothing is left out
			return 0
		}
	}
	return -1
}

// Waiting are replicas of one cluster that found no node there for long enough.
type Waiting struct {
	Short
	Replicas int32
}

// Move is what is decided.
type Move struct {
	placement.Decision
	// From are the clusters that lose replicas, and how many, sorted by name.
	From []workv1alpha2.TargetCluster
}

// Message describes the move: in the words of Karmada's descheduler, then for how long
// the replicas waited, and where it runs now.
func (m Move) Message(threshold time.Duration) string {
	parts, total := make([]string, len(m.From)), int32(0)
	for i, t := range m.From {
		parts[i] = fmt.Sprintf("%d replica(s) in cluster(%s)", t.Replicas, t.Name)
		total += t.Replicas
	}
	return fmt.Sprintf("Binding has been descheduled, %s, %d total descheduled replica(s): they found no node for %s or longer; it runs in %s instead",
		strings.Join(parts, ", "), total, duration.HumanDuration(threshold), placement.Text(m.Clusters))
}

// Decide moves as many of the replicas that wait as have a place in another cluster, and
// returns false where that is none. No cluster in which replicas wait gets any.
func Decide(b workv1alpha2.Binding, in placement.Situation, opts placement.Options, waiting []Waiting) (Move, bool) {
	loses := make([]workv1alpha2.TargetCluster, 0, len(waiting))
	var full []string
	total := int32(0)
	for _, w := range waiting {
		if w.Replicas <= 0 {
			continue
		}
		full = append(full, w.Cluster)
		ready := w.Ready
		if ready < 0 || ready > w.Assigned {
			ready = 0
		}
		if n := min(w.Replicas, w.Assigned-ready); n > 0 {
			loses, total = append(loses, workv1alpha2.TargetCluster{Name: w.Cluster, Replicas: n}), total+n
		}
	}
	slices.SortFunc(loses, func(a, b workv1alpha2.TargetCluster) int { return cmp.Compare(a.Name, b.Name) })
	least, most := int32(0), total // the most that is known to have a place, and that may have
	var best Move
	for least < most {
		try := least + (most-least+1)/2
		if least == 0 && most == total {
			try = total
		}
		from := first(loses, try)
		if clusters, ok := place(b, in, opts, from, full); ok {
			least, best = try, Move{Decision: decision(b, clusters, from, in.Now), From: from}
			continue
		}
		most = try - 1
	}
	return best, least > 0
}

// first returns the first n of what is lost.
func first(loses []workv1alpha2.TargetCluster, n int32) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, t := range loses {
		if t.Replicas = min(t.Replicas, n); t.Replicas > 0 {
			out = append(out, t)
			n -= t.Replicas
		}
	}
	return out
}

// place places b without what clusters lose, and returns false where that cannot be.
func place(b workv1alpha2.Binding, in placement.Situation, opts placement.Options, from []workv1alpha2.TargetCluster, full []string) ([]workv1alpha2.TargetCluster, bool) {
	spec := b.BindingSpec().DeepCopy()
	for i := range spec.Clusters {
		for _, lost := range from {
			if lost.Name == spec.Clusters[i].Name {
				spec.Clusters[i].Replicas -= lost.Replicas
			}
		}
	}
	req := placement.RequestOf(b, in.Peers)
	req.Spec, req.Estimates, req.Full = spec, in.Estimates, full
	result, err := placement.Place(req, in.Clusters, opts)
	if err != nil || result.AffinityName != req.ObservedAffinity {
		return nil, false
	}
	out := slices.DeleteFunc(result.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return t.Replicas == 0 && slices.ContainsFunc(from, func(lost workv1alpha2.TargetCluster) bool { return lost.Name == t.Name })
	})
	return out, keeps(spec, out)
}

// keeps reports whether the placement has all replicas, and takes none off a cluster but
// those that it is to lose.
func keeps(spec *workv1alpha2.ResourceBindingSpec, clusters []workv1alpha2.TargetCluster) bool {
	there, sum := map[string]int32{}, int64(0)
	for _, t := range clusters {
		there[t.Name] = t.Replicas
		sum += int64(t.Replicas)
	}
	for _, t := range spec.Clusters {
		if there[t.Name] < t.Replicas {
			return false
		}
	}
	return sum == int64(spec.Replicas)
}

// decision is that of b with other clusters, made now: all else stays, but for its last move, unless old copies of that are still
// to go, of which it says why.
func decision(b workv1alpha2.Binding, clusters, off []workv1alpha2.TargetCluster, now time.Time) placement.Decision {
	record, _ := placement.RecordOf(b)
	record.At = metav1.NewTime(now.UTC().Truncate(time.Second))
	spec := b.BindingSpec()
	if last := record.LastMove.Until(spec.GracefulEvictionTasks, now); last == nil || last.Ended != nil {
		record.LastMove = eviction.ReplicasOf(spec.Clusters, off, clusters, foundNone, now)
	}
	return placement.Decision{Clusters: clusters, Evictions: spec.GracefulEvictionTasks, Record: record, Why: Why}
}

const (
	// Why such a decision is made.
	Why = "replicas found no node"
	// foundNone is the same of replicas that are named.
	foundNone = "found no node there"
)
