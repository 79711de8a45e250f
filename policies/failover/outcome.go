package failover

import (
	"cmp"
	"slices"
	"time"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// Defaults of a Judging.
	DefaultHealthTimeout = 2 * time.Minute
	DefaultRecent        = 10 * time.Minute
)

// Judging is for how long the outcome of a move is observed. A zero field has its
// default.
type Judging struct {
	// HealthTimeout is how long a template may take to become healthy after its
	// move.
	HealthTimeout time.Duration
	// Recent is for how long a move counts for the rate of the next ones.
	Recent time.Duration
}

// Moved is a move of a template away from clusters that it had to leave.
type Moved struct {
	// To are the clusters that run it instead, or more of its replicas.
	To []string
	// At is when the move was decided.
	At time.Time
	// Well means that the template has been healthy there at some time since.
	Well bool
}

// MovedTo returns the move that is decided now: b is the binding before it,
// leaves the clusters that it leaves, and targets where it will run. It is false
// where the outcome would show nothing: the template runs in no other cluster, or
// was unhealthy before.
func MovedTo(b workv1alpha2.Binding, leaves []string, targets []workv1alpha2.TargetCluster, now time.Time) (Moved, bool) {
	had := map[string]int32{}
	for _, t := range b.BindingSpec().Clusters {
		had[t.Name] = t.Replicas
	}
	out := Moved{At: now}
	for _, t := range targets {
		if replicas, is := had[t.Name]; !is || t.Replicas > replicas {
			out.To = append(out.To, t.Name)
		}
	}
	ill := slices.ContainsFunc(b.BindingStatus().AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
		return i.Health == workv1alpha2.ResourceUnhealthy && slices.Contains(leaves, i.ClusterName)
	})
	return out, len(out.To) > 0 && !ill
}

// Underway returns the last move of a binding that has not ended, according to
// its eviction tasks; false where there is none. It is for a program that did not
// make the moves itself; those that have ended leave no trace.
func Underway(b workv1alpha2.Binding) (Moved, bool) {
	var out Moved
	spec := b.BindingSpec()
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		of := task.Reason == workv1alpha2.EvictionReasonTaintUntolerated || task.Reason == workv1alpha2.EvictionReasonApplicationFailure
		if !of || task.CreationTimestamp.IsZero() || task.CreationTimestamp.Time.Before(out.At) {
			continue
		}
		out = Moved{At: task.CreationTimestamp.Time}
		for _, t := range spec.Clusters {
			if !slices.Contains(task.ClustersBeforeFailover, t.Name) {
				out.To = append(out.To, t.Name)
			}
		}
	}
	return out, len(out.To) > 0
}

// MoveState is the outcome of a move.
type MoveState int

const (
	// MoveOver means that the move no longer counts: the template does not run
	// there any more, or the move is too long ago.
	MoveOver MoveState = iota
	// MoveWaiting means that the template may yet become healthy, or that its
	// health is not known.
	MoveWaiting
	// MoveHealthy means that it is healthy in all clusters that it was moved to.
	MoveHealthy
	// MoveIll means that it is not healthy after HealthTimeout, or was healthy and
	// is not any more.
	MoveIll
)

// StateOf returns the outcome of a move, by the template's binding as it is now;
// nil if that is gone.
func (m Moved) StateOf(b workv1alpha2.Binding, by Judging, now time.Time) MoveState {
	if b == nil || now.Sub(m.At) > cmp.Or(by.Recent, DefaultRecent) {
		return MoveOver
	}
	spec := b.BindingSpec()
	runs := func(name string) bool {
		return slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	}
	if !slices.ContainsFunc(m.To, runs) {
		return MoveOver
	}
	if slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.PurgeMode == policyv1alpha1.PurgeModeDirectly }) {
		return MoveWaiting // it waits for the old copy to be gone, which a lost cluster may never report
	}
	well, ill := true, false
	for _, name := range m.To {
		if !runs(name) {
			continue
		}
		health, applied := in(b, name)
		well = well && health == workv1alpha2.ResourceHealthy
		ill = ill || health == workv1alpha2.ResourceUnhealthy || !applied
	}
	switch {
	case well:
		return MoveHealthy
	case ill && (m.Well || now.Sub(m.At) > cmp.Or(by.HealthTimeout, DefaultHealthTimeout)):
		return MoveIll
	default:
		return MoveWaiting
	}
}

// in returns what a cluster reports of b.
func in(b workv1alpha2.Binding, cluster string) (health workv1alpha2.ResourceHealth, applied bool) {
	for i := range b.BindingStatus().AggregatedStatus {
		if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == cluster {
			return item.Health, item.Applied
		}
	}
	return "", false
}

// Outcomes counts recent moves by their outcome. The zero value is for no moves.
type Outcomes struct {
	Healthy, Ill, Waiting int
	// Such names one of those that are ill, as in "Deployment shop/web": the first
	// by name. Empty where none is.
	Such string
}

// Add counts another outcome.
func (o *Outcomes) Add(f MoveState) {
	switch f {
	case MoveHealthy:
		o.Healthy++
	case MoveIll:
		o.Ill++
	case MoveWaiting:
		o.Waiting++
	}
}

const (
	// fewestIll is how many have to be ill for the rate to fall: a few may be ill
	// for reasons of their own.
	fewestIll = 5
	// brisk is the rate that is divided where none is set, in templates per
	// second.
	brisk = 10
)

// Rate returns how many templates may be moved per second: set, where no more
// than a third of those that were moved are ill; half of it where more are, a
// quarter where more than half are, and a tenth where more than three quarters
// are. Those that wait count for neither side. A set of zero means no limit, and
// is taken for ten where it has to be divided. A negative set, which is the
// slowest rate, stays as it is. The rate never falls below a tenth, as only moves
// that go well can make it rise again.
func (o Outcomes) Rate(set float64) float64 {
	judged := o.Healthy + o.Ill
	if set < 0 || o.Ill < fewestIll || 3*o.Ill <= judged {
		return set
	}
	base := set
	if base == 0 {
		base = brisk
	}
	switch {
	case 2*o.Ill <= judged:
		return base / 2
	case 4*o.Ill <= 3*judged:
		return base / 4
	default:
		return base / 10
	}
}
