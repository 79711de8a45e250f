package failover

import (
	"cmp"
	"slices"
	"time"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const (
	// DefaultHealthTimeout and DefaultRecent are those of a Judging that does not say.
	DefaultHealthTimeout = 2 * time.Minute
	DefaultRecent        = 10 * time.Minute
)

// Judging says for how long it is looked at how something fares that was moved. A zero field has its default.
type Judging struct {
	// HealthTimeout is how long what was moved may take to become healthy where it was moved to.
	HealthTimeout time.Duration
	// Recent is for how long a move says something about the next one.
	Recent time.Duration
}

// Moved is a template that was moved off clusters that had to be left.
type Moved struct {
	// To are the clusters that run it instead, or more of it.
	To []string
	// At is when it was decided.
	At time.Time
	// Well says that it was healthy there at some time since.
	Well bool
}

// MovedTo returns what there is to be seen of a move that is decided now: b as it was before, what it leaves, and where it
// is to run. It is false where nothing will be seen: it runs in no other cluster, or was unhealthy before.
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

// Underway returns the last move of a binding that has not come to its end, as its eviction tasks show; false where there is
// none. Who did not make the moves himself knows of no others: of those that went well nothing is left.
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

// Fare is how something fares where it was moved to.
type Fare int

const (
	// FareOver says nothing any more: it does not run there, or it is too long ago.
	FareOver Fare = iota
	// FareWaiting may become healthy yet, or that is not known.
	FareWaiting
	// FareHealthy is healthy wherever it was moved to.
	FareHealthy
	// FareIll is not healthy after a Judging's HealthTimeout, or was healthy and is not any more.
	FareIll
)

// Fares says how a template fares that was moved, by its binding as it is now; nil if that is gone.
func (m Moved) Fares(b workv1alpha2.Binding, by Judging, now time.Time) Fare {
	if b == nil || now.Sub(m.At) > cmp.Or(by.Recent, DefaultRecent) {
		return FareOver
	}
	spec := b.BindingSpec()
	runs := func(name string) bool {
		return slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	}
	if !slices.ContainsFunc(m.To, runs) {
		return FareOver
	}
	if slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.PurgeMode == policyv1alpha1.PurgeModeDirectly }) {
		return FareWaiting // for the old copy to go, which a lost cluster may never report
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
		return FareHealthy
	case ill && (m.Well || now.Sub(m.At) > cmp.Or(by.HealthTimeout, DefaultHealthTimeout)):
		return FareIll
	default:
		return FareWaiting
	}
}

// in is what a cluster says of b.
func in(b workv1alpha2.Binding, cluster string) (health workv1alpha2.ResourceHealth, applied bool) {
	for i := range b.BindingStatus().AggregatedStatus {
		if item := &b.BindingStatus().AggregatedStatus[i]; item.ClusterName == cluster {
			return item.Health, item.Applied
		}
	}
	return "", false
}

// Outcomes count how what was moved last fares. The zero value: nothing was moved.
type Outcomes struct {
	Healthy, Ill, Waiting int
	// Such is one of those that are ill, "Deployment shop/web": the first by name. Empty where none is, or none is named.
	Such string
}

// Add counts one more.
func (o *Outcomes) Add(f Fare) {
	switch f {
	case FareHealthy:
		o.Healthy++
	case FareIll:
		o.Ill++
	case FareWaiting:
		o.Waiting++
	}
}

const (
	// fewestIll is how many must be ill for anything to be concluded: a few are so for reasons of their own.
	fewestIll = 5
	// brisk is what counts as the rate that was set, where none was.
	brisk = 10
)

// Rate returns how many templates are moved in a second, at most: as many as are set where no more than a third of those that
// were moved are ill, half of that where more are, a quarter where more than half are, and a tenth where more than three quarters
// are. Those that wait count for neither. Set is as many as there are where it is zero; then ten are what is divided. A negative one
// is the slowest that there is, and stays so. It is never less than a tenth: only what goes well can show that it does.
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
