package binding

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/binding/dispatchsuspension"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Evictions configures how failed clusters are evicted. The zero value is the default.
type Evictions struct {
	// Grace is how long a graceful eviction may take whose task has no time of its own; zero means
	// eviction.DefaultGrace.
	Grace time.Duration
	// Scheduler is the name of the scheduler whose decisions the loops make; empty means the
	// default.
	Scheduler string
}

// suspendDispatching keeps clusters that are being left, and are away, from getting what they did not get before.
func (r *Reconciler) suspendDispatching(ctx context.Context, s *state) (loop.Next, error) {
	p := r.writer
	return loop.Next{}, dispatchsuspension.Withholder{Hub: p.hub, Written: p.written}.From(ctx, s.binding.BindingSpec(), s.works, once(awayFrom(ctx, p)))
}

// endEvictions ends the eviction tasks of clusters that may be left now. Their Works are removed
// later in the same pass. If the binding has changed meanwhile, it writes nothing, and the pass
// is repeated.
func (p writer) endEvictions(ctx context.Context, s *state) (loop.Next, error) {
	spec := s.binding.BindingSpec()
	if len(spec.GracefulEvictionTasks) == 0 {
		p.there.End(s.key) // no answer is waited for any more
		return loop.Next{}, nil
	}
	holds := func(cluster string) bool { return len(worksIn(s.works, cluster)) > 0 }
	var again loop.Next
	heard := once(func(cluster string) bool { return upToDate(ctx, p, s, cluster, &again) }) // an answer counts for one pass
	is := func(cluster string) bool {
		if !s.ready[cluster] {
			p.there.Forget(s.key, cluster)
			return false
		}
		return heard(cluster)
	}
	ending := endingOf(ctx, p, s, holds)
	ending.Ready = is
	ending.Serves = func(cluster string, whole bool) bool {
		works := worksIn(s.works, cluster)
		serves := func(heard bool) bool {
			return slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool { return rollup.Serves(w, heard, whole) })
		}
		return serves(true) || serves(false) && !heard(cluster)
	}
	tasks, ended, until := ending.Of(spec)
	if len(ended) > 0 { // before the old copy is removed, check in the new clusters themselves
		ending.Ready = once(func(cluster string) bool { return is(cluster) && p.confirms(ctx, s, cluster, &again) })
		tasks, ended, until = ending.Of(spec)
	}
	if in := until.Sub(ending.Now); !until.IsZero() && (again.After == 0 || in < again.After) {
		again.After = in
	}
	if apiequality.Semantic.DeepEqual(tasks, spec.GracefulEvictionTasks) {
		return again, nil
	}
	desired := s.binding.DeepCopyObject().(workv1alpha2.Binding)
	desired.BindingSpec().GracefulEvictionTasks = tasks
	placement.EndMove(desired, leavesBeside(ctx, p, desired, s.works, ended), ending.Now)
	patch, some, err := bindings.PatchOfRecord(s.binding, desired)
	if err == nil && some {
		err = p.hub.Patch(ctx, desired, patch)
	}
	switch {
	case bindings.IsStale(err): // set a time, as no event enqueues for a change of the record alone
		return loop.Next{Done: true, After: askAgain}, joined(s.failed)
	case err != nil:
		return loop.Next{}, fmt.Errorf("end the eviction from %s: %w", strings.Join(ended, ", "), err)
	}
	p.own.Wrote(desired)
	s.binding = desired
	if len(ended) == 0 { // the tasks only got a deadline
		return again, nil
	}
	log.FromContext(ctx).Info("left clusters for others", "clusters", ended)
	reportLeft(p.events, desired, spec, ended, func(cluster string) bool { return s.ready[cluster] && p.answers(ctx, cluster) })
	return again, nil
}

// reportLeft emits an event for the clusters that were left, with the reasons in the binding before. It leaves out
// clusters in which the template is placed again.
func reportLeft(to loop.Recorder, b workv1alpha2.Binding, before *workv1alpha2.ResourceBindingSpec, ended []string, healthy func(string) bool) {
	targets := b.BindingSpec().Clusters
	left := slices.DeleteFunc(slices.Clone(ended), func(name string) bool {
		return slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	})
	if len(left) == 0 {
		return
	}
	message := eviction.Left(before, left, placement.Text(targets), healthy)
	to.Event(bindings.TemplateRef(b), corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, message)
	to.Event(b, corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed, message)
}

// upToDate reports whether the statuses of a cluster's Works describe what is there now, good or bad. If they do
// not, it may set in again when to reconcile again.
func upToDate(ctx context.Context, p writer, s *state, cluster string, again *loop.Next) bool {
	if !p.answers(ctx, cluster) {
		p.there.Forget(s.key, cluster)
		return false
	}
	since, yes, after := p.there.Ask(s.key, cluster)
	if yes {
		after = p.freshness.UnconfirmedFor(worksIn(s.works, cluster), since)
	}
	if after > 0 && (again.After == 0 || after < again.After) {
		again.After = after
	}
	return yes && after == 0
}

// endingOf returns what is known of the clusters that a binding leaves, except whether copies are ready and serve.
func endingOf(ctx context.Context, p writer, s *state, holds func(string) bool) eviction.Ending {
	observed := s.binding.BindingStatus().SchedulerObservedGeneration == s.binding.GetGeneration()
	return eviction.Ending{
		HasWork: holds,
		Gone: func(cluster string) bool {
			_, found, err := p.cluster(ctx, cluster)
			return err == nil && !found
		},
		Away:      awayFrom(ctx, p),
		Serving:   s.serving,
		Returning: p.returning(ctx, s),
		Scheduled: placement.Answered(s.binding) || observed && !placement.Mine(s.binding, p.evictions.Scheduler),
		Now:       p.clock.Now(),
		Grace:     p.evictions.Grace,
	}
}

// awayFrom returns a function that reports whether a removal from a cluster would have to wait, as it is unreachable.
// A Cluster that cannot be read counts as that.
func awayFrom(ctx context.Context, p writer) func(cluster string) bool {
	return func(cluster string) bool {
		c, found, err := p.cluster(ctx, cluster)
		return err != nil || found && failover.Away(c)
	}
}

// returning returns a function that returns until when the scheduler may take back a cluster that had failed; nil for a binding that
// is not placed in each cluster that fits.
func (p writer) returning(ctx context.Context, s *state) func(cluster string) time.Time {
	if !placement.Everywhere(s.binding.BindingSpec()) {
		return nil
	}
	return func(cluster string) time.Time {
		c, found, err := p.cluster(ctx, cluster)
		if err != nil || !found {
			return time.Time{}
		}
		return failover.JustBackUntil(c, p.clock.Now())
	}
}

// once returns a function that calls ask once for each cluster and remembers the answers.
func once(ask func(cluster string) bool) func(string) bool {
	known := map[string]bool{}
	return func(cluster string) bool {
		yes, asked := known[cluster]
		if !asked {
			yes = ask(cluster)
			known[cluster] = yes
		}
		return yes
	}
}

const (
	// timeout is how long a cluster may take to answer whether it has a copy, and askAgain
	// the pause before it is asked again if it has none.
	timeout  = 5 * time.Second
	askAgain = 5 * time.Second
)

// confirms reports whether a cluster itself has what the statuses of its Works report. Statuses come from
// watches, which may not have shown a loss yet. If the cluster cannot be asked from
// here, the statuses count.
func (p writer) confirms(ctx context.Context, s *state, cluster string, again *loop.Next) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, work := range worksIn(s.works, cluster) {
		known, err := p.asks(ctx, cluster, work)
		if !known || err == nil {
			continue
		}
		log.FromContext(ctx).Info("A cluster is not left: the one that stays does not say that it has the copy", "cluster", cluster, "reason", err.Error())
		again.After = askAgain
		return false
	}
	return true
}

// answers reports whether a cluster is reachable. The Works of one that is not show what was so
// when it last reported.
func (p writer) answers(ctx context.Context, name string) bool {
	c, found, err := p.cluster(ctx, name)
	return err == nil && found && !silent(c)
}

// silent reports whether a cluster is known to be unreachable, to be another one than before, or
// to refuse reads of objects.
func silent(c *clusterv1alpha1.Cluster) bool {
	_, silent := rollup.SilenceOf(c)
	return silent
}

// addLeaving enqueues the bindings on a cluster that are leaving others.
func (r *Reconciler) addLeaving(ctx context.Context, q queue, cluster string) {
	err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) {
		if leaves(b) {
			q.Add(requestFor(b))
		}
	}, client.MatchingFields{bindings.ByCluster: cluster})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings on a cluster", "cluster", cluster)
	}
}

// leaves reports whether a binding is leaving a cluster for others.
func leaves(b workv1alpha2.Binding) bool { return len(b.BindingSpec().GracefulEvictionTasks) > 0 }

// moving reports whether the binding of a Work is leaving a cluster for others.
func (r *Reconciler) moving(ctx context.Context, w *workv1alpha1.Work) bool {
	key, ok := bindings.OwnerOf(w)
	if !ok {
		return false
	}
	b := bindings.New(key.Namespace)
	if err := r.works.hub.Get(ctx, key, b, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err) != nil
	}
	return leaves(b)
}
