package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// mostMoved is how many clusters From and To of a Move have at most.
const mostMoved = 16

// Move is the last move of a template. It is recorded so that it is still known
// when its eviction tasks are gone.
type Move struct {
	// From are the clusters that it left, sorted; at most 16.
	From []string `json:"from"`
	// To are the clusters that run it instead, or more of its replicas, sorted; at
	// most 16. Empty: it only left.
	To []string `json:"to,omitempty"`
	// Why is the reason, for people, at most 256 bytes.
	Why string `json:"why,omitempty"`
	// At is when it was decided, in whole seconds.
	At metav1.Time `json:"at"`
	// Ended is when the last old copy was removed; nil while that is pending.
	Ended *metav1.Time `json:"ended,omitempty"`
	// Replicas is how many moved, where the template need not have left the clusters in
	// From: the descheduler takes what waits off them. Zero: it left them.
	Replicas int32 `json:"replicas,omitempty"`
	// Beside are the UIDs of the Works that go with the end of the move, without being deleted first: see
	// placement.EndsBeside.
	Beside []types.UID `json:"beside,omitempty"`
}

// MoveOf returns the move from one placement to another, decided now; nil where
// the template leaves no cluster, or all of them.
func MoveOf(before, after []workv1alpha2.TargetCluster, why string, now time.Time) *Move {
	had := make(map[string]int32, len(before))
	var from []string
	for _, t := range before {
		had[t.Name] = t.Replicas
		if !stands(after, t.Name) {
			from = append(from, t.Name)
		}
	}
	if len(from) == 0 || len(after) == 0 {
		return nil
	}
	return &Move{From: some(from), To: some(grown(had, after)), Why: excerpt.Message(why, mostWhy), At: seconds(now)}
}

// ReplicasOf returns the move of replicas off clusters, which end there at once; before
// and after are the placements.
func ReplicasOf(before, off, after []workv1alpha2.TargetCluster, why string, now time.Time) *Move {
	had := make(map[string]int32, len(before))
	for _, t := range before {
		had[t.Name] = t.Replicas
	}
	out := Move{To: some(grown(had, after)), Why: excerpt.Message(why, mostWhy), At: seconds(now)}
	for _, t := range off {
		out.From, out.Replicas = append(out.From, t.Name), out.Replicas+t.Replicas
	}
	out.From, out.Ended = some(out.From), &out.At
	return &out
}

// grown returns the clusters that have more replicas after than they had.
func grown(had map[string]int32, after []workv1alpha2.TargetCluster) []string {
	var out []string
	for _, t := range after {
		if replicas, is := had[t.Name]; !is || t.Replicas > replicas {
			out = append(out, t.Name)
		}
	}
	return out
}

// Until returns m given the present eviction tasks of its binding: it ends now if
// no task is for a cluster in From. Nil stays nil, and a move that has ended
// stays as it is.
func (m *Move) Until(tasks []workv1alpha2.GracefulEvictionTask, now time.Time) *Move {
	if m == nil || m.Ended != nil || slices.ContainsFunc(tasks, func(t workv1alpha2.GracefulEvictionTask) bool { return slices.Contains(m.From, t.FromCluster) }) {
		return m
	}
	out, at := *m, seconds(now)
	out.Ended = &at
	return &out
}

// Past returns a text about a move that has ended: "from west to east at
// 2026-01-02 06:11:04 UTC, 12m ago: untolerated taint {a:NoExecute}; the old copy
// went at 06:14:04 UTC", or "2 replicas from west to east at …". It is empty for nil,
// and for a move that has not ended.
// A zero now leaves out how long ago it was.
func (m *Move) Past(tasks []workv1alpha2.GracefulEvictionTask, now time.Time) string {
	if m == nil {
		return ""
	}
	m = m.Until(tasks, m.At.Time) // the tasks may have been removed by somebody else
	if m.Ended == nil {
		return ""
	}
	text := "from " + strings.Join(m.From, ", ")
	switch m.Replicas {
	case 0:
	case 1:
		text = "1 replica " + text
	default:
		text = fmt.Sprintf("%d replicas %s", m.Replicas, text)
	}
	if len(m.To) > 0 {
		text += " to " + strings.Join(m.To, ", ")
	}
	text += " at " + m.At.UTC().Format(time.DateTime+" UTC")
	if !now.IsZero() {
		text += ", " + duration.HumanDuration(max(now.Sub(m.At.Time), 0)) + " ago"
	}
	if text += ": " + cmp.Or(m.Why, "nobody said why"); !m.Ended.After(m.At.Time) {
		return text
	}
	form := time.TimeOnly
	if m.Ended.Sub(m.At.Time) >= 24*time.Hour {
		form = time.DateTime
	}
	return text + "; the old copy went at " + m.Ended.UTC().Format(form+" UTC")
}

// Tainted returns the clusters that m left because of a taint other than that of a drain, as those of a lost cluster are, and in
// which the template is not placed again, although it is elsewhere.
func (m *Move) Tainted(spec *workv1alpha2.ResourceBindingSpec) []string {
	if m == nil || len(spec.Clusters) == 0 || !strings.Contains(m.Why, "untolerated taint {") || strings.Contains(m.Why, "{"+clusterv1alpha1.TaintClusterDrain) {
		return nil
	}
	var out []string
	for _, name := range m.From {
		if !stands(spec.Clusters, name) {
			out = append(out, name)
		}
	}
	return out
}

func some(names []string) []string {
	slices.Sort(names)
	return names[:min(len(names), mostMoved)]
}

func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
