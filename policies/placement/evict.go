package placement

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/policies/placement/unplaced"
)

// tolerations are those of the placement that is in force: the one that was applied last, or
// the one that is about to be.
func (s *state) tolerations() []corev1.Toleration {
	if text, ok := s.applied(); ok && text != s.placement && !s.placementChanged() {
		var was policyv1alpha1.Placement
		if json.Unmarshal([]byte(text), &was) == nil {
			return was.ClusterTolerations
		}
	}
	if s.spec.Placement == nil {
		return nil
	}
	return s.spec.Placement.ClusterTolerations
}

// barred returns the clusters that must not run the binding now, and when that changes by time alone. Where it has come to
// its end it stays.
func barred(s *state, in Situation, opts Options) (failover.Due, time.Time) {
	tainted, next := opts.Failover.Of(in.Clusters, s.tolerations(), in.Now)
	for _, name := range failover.Finished(s.Binding) {
		delete(tainted, name)
	}
	ill, then := failover.Application(in.Clusters, s.Binding, movesOf(s.record), in.Now)
	due, next := failover.Both(tainted, ill, next, then)
	asked := failover.Due{}
	for _, task := range s.spec.GracefulEvictionTasks { // of what is still placed there
		if !eviction.Moves(&task) && stands(s.spec.Clusters, task.FromCluster) {
			asked[task.FromCluster] = failover.Cause{Why: "an eviction task of " + task.Producer}
		}
	}
	if len(asked) == 0 {
		return due, next
	}
	return failover.Both(due, asked, next, time.Time{})
}

// movesOf are those of an application until the last decision.
func movesOf(r Record) failover.Moves {
	if r.Moves == nil {
		return failover.Moves{}
	}
	return *r.Moves
}

// targetsIn returns the targets that are barred, in the order of the placement.
func targetsIn(clusters []workv1alpha2.TargetCluster, barred failover.Due) []string {
	if len(barred) == 0 {
		return nil
	}
	return slices.DeleteFunc(namesOf(clusters), func(name string) bool { _, is := barred[name]; return !is })
}

// placing is one decision: a binding, what it is decided in, and the clusters that must not
// run it.
type placing struct {
	*state
	in     Situation
	opts   Options
	barred failover.Due
	// full are the clusters that keep what they have and get no more.
	full []string
	// returns are the clusters that it was moved off, for what is over by now.
	returns map[string]bool
	// drains says that a cluster is left because it is drained.
	drains bool
	// within says that no cluster is to get more than it has room for.
	within bool
}

// decide places the binding off the clusters that are to be evicted. Where that cannot be, it
// moves off as many of them as have a replacement, and stays in the others: the last copy is
// not taken for want of a better place. Due says that a decision is due without them, too.
func (p *placing) decide(due bool, evicted []string) Decision {
	if len(p.back.Stable) > 0 && !p.rebalances() {
		if d := homeward(p, true); d.Err == nil {
			return p.finish(d, evicted)
		}
		if homeward(p, false).Err == nil { // room alone keeps it from there; all else may be over soon
			stayAway(p)
			_, due = p.due(p.in.Clusters)
		}
	}
	if !due && len(evicted) == 0 {
		return p.finish(p.keep(), nil)
	}
	all := p.barred
	if afresh(p.state) || Everywhere(p.spec) { // it is wanted where it is best now, or in all that fit, and may not have left yet
		p.returns = p.recovered()
	}
	var lost []string
	if len(evicted) > 0 {
		lost = lostAmong(p.spec.Clusters, p.in.Clusters)
	}
	p.full = lost
	d := move(p, all, evicted)
	if d.Err == nil || len(evicted) == 0 {
		return p.finish(d, evicted)
	}
	refused := d.Err
	p.barred = maps.Clone(all)
	maps.DeleteFunc(p.barred, func(name string, _ failover.Cause) bool { return slices.Contains(evicted, name) })
	p.full = slices.Concat(lost, evicted)
	if d = p.keep(); due {
		if d = p.try(p.barred); d.Err != nil { // better in a barred cluster than nowhere
			p.full = nil
			d = p.try(p.barred)
		}
	}
	var moved []string
	for _, name := range evicted {
		more := maps.Clone(p.barred)
		more[name] = all[name]
		if len(more) == len(all) {
			break // that was tried
		}
		if one := move(p, more, []string{name}); one.Err == nil && len(without(namesOf(one.Clusters), evicted)) > 0 {
			d, p.barred, moved = one, more, append(moved, name)
		}
	}
	d.Record.Stays = unplaced.In(without(evicted, moved), all, refused)
	return p.finish(d, moved)
}

// homeward decides with the clusters preferred that are well again. Within what each has room for, nothing is taken off others for what
// would find no place.
func homeward(p *placing, within bool) Decision {
	p.returns, p.full, p.within = p.recovered(), lostAmong(p.spec.Clusters, p.in.Clusters), within
	d := anywhere(p, p.barred)
	if p.within = false; d.Err != nil || !within {
		p.returns, p.full = nil, nil
	}
	return d
}

// move decides with these clusters barred, of which some are left now: within what others have room for, else as the placement says, as
// clusters may grow.
func move(p *placing, barred failover.Due, evicted []string) Decision {
	if p.within = len(evicted) > 0; p.within {
		returns := p.returns
		if d := anywhere(p, barred); d.Err == nil {
			return d
		}
		p.within, p.returns = false, returns
	}
	return anywhere(p, barred)
}

// anywhere decides with these clusters barred: rather in a former cluster than nowhere.
func anywhere(p *placing, barred failover.Due) Decision {
	d := p.try(barred)
	if d.Err != nil {
		if p.returns = p.recovered(); len(p.returns) > 0 {
			d = p.try(barred)
		}
	}
	return d
}

// lostAmong returns the targets that do not answer: what is moved off others must not go there, as it may never run.
func lostAmong(targets []workv1alpha2.TargetCluster, snap Snapshot) []string {
	return slices.DeleteFunc(namesOf(targets), func(name string) bool {
		c, found := snap.Cluster(name)
		return !found || !failover.Lost(c)
	})
}

// undo decides whether moves are taken back that have not come to their end, as nothing becomes healthy where they led; state.undone are
// their clusters, none where they are not. The time is when that is to be looked at again. What is divided by room is left to the descheduler.
func undo(p *placing) (d Decision, again time.Time) {
	if !Whole(p.spec) || len(targetsIn(p.spec.Clusters, p.barred)) > 0 {
		return Decision{}, time.Time{}
	}
	p.undone, again = p.opts.Failover.Undone(p.Binding, p.in.Clusters, p.barred, p.in.Now)
	if len(p.undone) == 0 {
		return Decision{}, again
	}
	try := *p
	d = try.decide(true, nil)
	if d.Err != nil || !slices.ContainsFunc(d.Clusters, func(t workv1alpha2.TargetCluster) bool { return slices.Contains(p.undone, t.Name) }) {
		p.undone = nil // it cannot be there any more
	}
	return d, again
}

// recovered returns the clusters that the binding was moved off, or is about to be, because they or it failed there, and
// that are well now.
func (p *placing) recovered() map[string]bool {
	out := map[string]bool{}
	for _, task := range p.spec.GracefulEvictionTasks {
		if p.over(&task) && !stands(p.spec.Clusters, task.FromCluster) {
			out[task.FromCluster] = true
		}
	}
	return out
}

// stayAway has the binding no longer return to the clusters that are well again.
func stayAway(p *placing) {
	p.back.Left = slices.DeleteFunc(slices.Clone(p.back.Left), func(l failover.Left) bool { return slices.Contains(p.back.Stable, l.Cluster) })
	p.back.Stable = nil
}

// over reports whether the cause of a task is over. That is not known of other components' tasks.
func (p *placing) over(task *workv1alpha2.GracefulEvictionTask) bool {
	if _, bars := p.barred[task.FromCluster]; bars {
		return false
	}
	switch task.Reason {
	case workv1alpha2.EvictionReasonTaintUntolerated:
		return true
	case workv1alpha2.EvictionReasonApplicationFailure:
		return slices.ContainsFunc(p.BindingStatus().AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
			return item.ClusterName == task.FromCluster && item.Health == workv1alpha2.ResourceHealthy
		})
	default:
		return false
	}
}

// try decides with these clusters barred.
func (p *placing) try(barred failover.Due) Decision {
	req := p.request(p.in.Peers)
	full := slices.Concat(p.full, failover.Finished(p.Binding))
	req.Barred, req.Full, req.Returns, req.Home, req.Estimates = barred, full, p.returns, p.home(), p.in.Estimates
	req.WithinRoom = p.within
	result, err := Place(req, p.in.Clusters, p.opts)
	d := p.outcome(result, err)
	d.Record.Plugins = plugins.Own(p.opts.Plugins)
	if err != nil {
		p.stay(&d, p.in.Clusters)
	}
	return d
}

// keep returns the present placement as a decision.
func (p *placing) keep() Decision {
	applied, _ := p.applied()
	d := Decision{Clusters: p.spec.Clusters, AppliedPlacement: applied, Record: p.record}
	if !p.recorded { // by a scheduler that keeps no record
		d.Record = Record{Reason: workv1alpha2.BindingReasonSuccess, Message: workv1alpha2.SuccessfulSchedulingMessage, AffinityName: p.affinity()}
	}
	d.Record.Stays = nil
	return d
}

func (p *placing) finish(d Decision, evicted []string) Decision {
	d.Evicts = evicted
	if p.drains = slices.ContainsFunc(evicted, func(name string) bool { return p.barred[name].Drain }); p.drains && d.Err == nil {
		d.Clusters = p.steady(d.Clusters)
	}
	d.Record.Moves = p.barred.Moves(p.record.Moves, evicted, p.in.Now)
	d.Record.Drained, d.Record.Left = p.drained(&d), p.left(&d)
	d.Evictions = p.evictions(d.Clusters)
	return d
}

// evict returns the task by which a target is left because it, or the template there, failed.
func (p *placing) evict(t workv1alpha2.TargetCluster, cause failover.Cause) workv1alpha2.GracefulEvictionTask {
	created := metav1.NewTime(p.in.Now.UTC().Truncate(time.Second))
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: t.Name, PurgeMode: p.purge(),
		Reason: workv1alpha2.EvictionReasonTaintUntolerated, Producer: workv1alpha2.EvictionProducerTaintManager,
		Message: cause.Why, CreationTimestamp: &created,
	}
	if t.Replicas > 0 {
		task.Replicas = &t.Replicas
	}
	if p.opts.Failover.State {
		task.PreservedLabelState, _ = failover.State(p.Binding, t.Name, cause.Application) // where it errs, the cluster is not left
	}
	if len(task.PreservedLabelState) > 0 {
		task.ClustersBeforeFailover = namesOf(p.spec.Clusters) // a copy that runs already has a state of its own
	}
	switch {
	case cause.Application:
		p.ofApplication(&task)
	case cause.Drain:
		task.Producer, task.PurgeMode = workv1alpha2.EvictionProducerDrain, policyv1alpha1.PurgeModeGracefully
		if eviction.Directly(p.spec) { // two copies must never run at once
			task.PurgeMode = policyv1alpha1.PurgeModeDirectly
		}
	}
	return task
}

// ofApplication fills a task in for an application that failed, as its policy asks for.
func (p *placing) ofApplication(task *workv1alpha2.GracefulEvictionTask) {
	behavior := p.spec.Failover.Application
	task.Reason, task.Producer = workv1alpha2.EvictionReasonApplicationFailure, workv1alpha2.EvictionProducerApplicationFailover
	if p.GetNamespace() == "" {
		task.Producer = workv1alpha2.EvictionProducerClusterApplicationFailover
	}
	task.ClustersBeforeFailover = namesOf(p.spec.Clusters)
	switch behavior.PurgeMode {
	case policyv1alpha1.PurgeModeDirectly:
		task.PurgeMode = behavior.PurgeMode
	case policyv1alpha1.PurgeModeNever:
		task.PurgeMode, task.SuppressDeletion = behavior.PurgeMode, ptr.To(true)
	default:
		task.PurgeMode, task.GracePeriodSeconds = policyv1alpha1.PurgeModeGracefully, behavior.GracePeriodSeconds
	}
}

// purge is the policy's purge mode, otherwise the rules'.
func (p *placing) purge() policyv1alpha1.PurgeMode {
	if f := p.spec.Failover; f != nil && f.Cluster != nil && f.Cluster.PurgeMode != "" {
		return f.Cluster.PurgeMode
	}
	if p.opts.Failover.Purge != "" {
		return p.opts.Failover.Purge
	}
	return policyv1alpha1.PurgeModeGracefully
}

// vacate takes a binding that another scheduler places off the clusters that must not run
// it: that scheduler finds others, and the old copies stay until it has.
func (s *state) vacate(in Situation, opts Options) (Decision, bool) {
	if !s.foreign(opts.SchedulerName) {
		return Decision{}, false
	}
	due, next := barred(s, in, opts)
	opts.Failover.Withhold(due, s.Binding)
	p := placing{state: s, in: in, opts: opts, barred: due}
	evicted := targetsIn(s.spec.Clusters, due)
	if len(s.spec.Clusters) == 0 {
		return p.giveBack(next)
	}
	if len(evicted) == 0 {
		return Decision{Next: next}, false
	}
	applied, _ := s.applied()
	d := Decision{AppliedPlacement: applied, Why: DueEvicted, Evicts: evicted, Next: next, Evictions: slices.Clone(s.spec.GracefulEvictionTasks)}
	for _, t := range s.spec.Clusters {
		why, goes := due[t.Name]
		if !goes {
			d.Clusters = append(d.Clusters, t)
			continue
		}
		if !left(d.Evictions, t.Name) {
			d.Evictions = append(d.Evictions, p.evict(t, why))
		}
	}
	return d, true
}

// giveBack returns the clusters to a binding of another scheduler that it was taken off, and that are well before that
// scheduler has found others.
func (p *placing) giveBack(next time.Time) (Decision, bool) {
	applied, _ := p.applied()
	d := Decision{AppliedPlacement: applied, Why: DueEvicted, Next: next}
	recovered := p.recovered()
	for _, task := range p.spec.GracefulEvictionTasks {
		if !recovered[task.FromCluster] || stands(d.Clusters, task.FromCluster) {
			d.Evictions = append(d.Evictions, task)
			continue
		}
		d.Clusters = append(d.Clusters, workv1alpha2.TargetCluster{Name: task.FromCluster, Replicas: ptr.Deref(task.Replicas, 0)})
	}
	return d, len(d.Clusters) > 0
}

// foreign reports whether another scheduler decides about the binding.
func (s *state) foreign(scheduler string) bool {
	if s.GetDeletionTimestamp() != nil || orDefault(s.spec.SchedulerName) == orDefault(scheduler) {
		return false
	}
	return s.spec.Suspension == nil || s.spec.Suspension.Scheduling == nil || !*s.spec.Suspension.Scheduling
}
