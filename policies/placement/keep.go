package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/placement/unfit"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

// Refused returns the decision in place of one that the server did not
// take: b stays where it is, but for clusters of snap that are leaving, and says why, also of the clusters that it
// was to be moved off. The second result reports whether there is anything to write: b may say so already.
func Refused(b workv1alpha2.Binding, refused Decision, snap Snapshot, reason, message string, now time.Time) (Decision, bool) {
	s := stateOf(b)
	applied, _ := s.applied()
	d := Decision{
		Clusters: staying(s.spec.Clusters, snap), Evictions: s.spec.GracefulEvictionTasks, AppliedPlacement: applied,
		Record: Record{
			Reason: reason, Message: message, AffinityName: s.affinity(), Cause: refusalCause(message),
			Stays: refused.staysAll(message),
			Moves: s.record.Moves, Drained: s.record.Drained, Left: s.record.Left, EvictionReported: s.record.EvictionReported, LastMove: s.record.LastMove, Rules: s.record.Rules,
		},
	}
	if stays, reported := d.Record.Stays, s.record.EvictionReported; stays != nil && (reported == nil || reported.Of != stays.Of) {
		d.Record.EvictionReported = eviction.NewReport(stays.Of, now)
	}
	return d, s.stamp(&d, now)
}

// staysAll says what stays if a decision is refused: what it moves off clusters, and what it has stay anyway.
func (d Decision) staysAll(message string) *unplaced.Stays {
	if len(d.Evicts) == 0 {
		return d.Record.Stays
	}
	had, texts := ptr.Deref(d.Record.Stays, unplaced.Stays{}), eviction.Named(d.Evicts, d.Evictions)
	return &unplaced.Stays{
		Message: strings.TrimSpace(fmt.Sprintf("It stays in %s: its move is refused: %s %s", strings.Join(texts, ", "), message, had.Message)),
		Cause:   unfit.CauseOf(append(texts, refusalCause(message), had.Cause)), Of: unfit.CauseOf(append(texts, had.Of)),
		Clusters: slices.Sorted(slices.Values(slices.Concat(had.Clusters, d.Evicts))),
	}
}

// refusalCause distinguishes refusals by their texts without the numbers: how much
// of a quota is used changes with each of its neighbours.
func refusalCause(message string) string {
	return unfit.CauseOf(slices.DeleteFunc(strings.Fields(message), func(word string) bool {
		word = strings.TrimLeft(word, "-+(\"")
		return word != "" && '0' <= word[0] && word[0] <= '9'
	}))
}

// Remaining returns the targets of b without the clusters that are leaving, and
// false where all remain. It is for bindings about which nothing is
// decided, because no policy carries them or their scheduling is suspended: they
// need not hold a cluster back, and nothing says where else they should run. The
// bindings of other schedulers are theirs.
func Remaining(b workv1alpha2.Binding, snap Snapshot, scheduler string) ([]workv1alpha2.TargetCluster, bool) {
	spec := b.BindingSpec()
	if orDefault(spec.SchedulerName) != orDefault(scheduler) || Mine(b, scheduler) || b.GetDeletionTimestamp() != nil {
		return nil, false
	}
	out := staying(spec.Clusters, snap)
	return out, len(out) < len(spec.Clusters)
}

// staying returns those of targets whose clusters are not leaving. One that is not
// known is not known to be gone.
func staying(targets []workv1alpha2.TargetCluster, snap Snapshot) []workv1alpha2.TargetCluster {
	return slices.DeleteFunc(slices.Clone(targets), func(t workv1alpha2.TargetCluster) bool {
		c, ok := snap.Cluster(t.Name)
		return ok && c.DeletionTimestamp != nil
	})
}
