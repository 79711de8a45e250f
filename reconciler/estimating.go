package reconciler

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/descheduler"
	"github.com/flotilla-io/flotilla/reconciler/profiles"
)

// Estimator says what fits in clusters, and what waits there, by who sees their nodes. An
// error means that nothing is known.
type Estimator interface {
	decider.Estimator
	// Unschedulable counts the replicas that wait for so long, or longer, for a node.
	Unschedulable(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error)
}

// Estimates says who is asked what fits in clusters. The zero value asks about those that
// this process watches itself, and those whose agents report their nodes.
type Estimates struct {
	// Reported counts by what clusters report alone: nobody is asked.
	Reported bool
	// Least counts the least of what a cluster reports and of what was answered about it,
	// as Karmada does; otherwise the answer overrules.
	Least bool
	// Plugins bound what fits in clusters that this process watches, besides the built-in
	// ones, and in those whose agents report their nodes: there these have names of no
	// meaning.
	Plugins []nodes.Plugin
	// Remote makes who is asked about all other clusters, and tells of those that do not answer; nil: nobody is.
	Remote func(mgr ctrl.Manager, events Recorder) (Estimator, error)
	// Timeout is how long that may take; zero means decider.DefaultTimeout.
	Timeout time.Duration
}

// capacity holds the sources of what still fits in clusters, and of what waits there.
type capacity struct {
	memberEstimator memberEstimator
	profiled        *profiles.Profiles       // nil: agents are not asked
	remote          Estimator                // nil: nobody is asked about other clusters
	descheduler     *descheduler.Descheduler // nil if it is not chosen, or not made yet
}

// estimators finds who is asked; it is called before the decider is made.
func (f *fleet) estimators(mgr ctrl.Manager) (decider.Estimators, error) {
	of := &f.opts.Scheduling.Estimates
	out := decider.Estimators{Timeout: of.Timeout}
	if of.Reported {
		return out, nil
	}
	f.capacity.memberEstimator.plugins = append(f.capacity.memberEstimator.plugins, nodes.Resources{})
	if !f.opts.Scheduling.Off.MemberQuotas {
		f.capacity.memberEstimator.plugins = append(f.capacity.memberEstimator.plugins, nodes.Quotas{})
	}
	f.capacity.memberEstimator.plugins = append(f.capacity.memberEstimator.plugins, of.Plugins...)
	if f.chosen["cluster"] {
		out.Watched = &f.capacity.memberEstimator
	}
	profiled := profiles.New(mgr.GetClient(), profiles.Options{
		Plugins: f.capacity.memberEstimator.plugins, More: func(name string) { f.decider.Unschedulable().MoreCapacity(name) }, Waits: f.capacity.waits,
	})
	if err := profiled.Register(mgr); err != nil {
		return out, err
	}
	f.capacity.profiled, out.Profiled = profiled, profiled
	if of.Remote == nil {
		return out, nil
	}
	var err error
	if f.capacity.remote, err = of.Remote(mgr, ofFleet{f}); err != nil {
		return out, err
	}
	out.Remote = f.capacity.remote
	return out, nil
}

// memberEstimator asks the estimator of the cluster loop, once there is one.
type memberEstimator struct {
	plugins []nodes.Plugin
	cluster *cluster.Reconciler // nil: there is none yet
}

func (s *memberEstimator) of() (cluster.Estimator, error) {
	if s.cluster == nil {
		return cluster.Estimator{}, cluster.ErrNotWatched
	}
	return s.cluster.Estimator(s.plugins...), nil
}

// MaxReplicas implements Estimator.
func (s *memberEstimator) MaxReplicas(ctx context.Context, name string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.MaxReplicas(ctx, name, need, assumed)
}

// MaxSets implements Estimator.
func (s *memberEstimator) MaxSets(ctx context.Context, name, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.MaxSets(ctx, name, namespace, components, assumed)
}

// Unschedulable implements Estimator.
func (s *memberEstimator) Unschedulable(ctx context.Context, name string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.Unschedulable(ctx, name, of, threshold)
}

// waiters counts the pods that wait in a cluster: from a watch where there is one, else from what its agent reports.
func (r *capacity) waiters(ctx context.Context, cluster string, q descheduler.Question) (int32, error) {
	n, err := r.memberEstimator.Unschedulable(ctx, cluster, q.Of, q.Threshold)
	if err != nil && r.profiled != nil {
		n, err = r.profiled.Unschedulable(ctx, cluster, q.Of, q.Threshold, q.Placed)
	}
	if err != nil && r.remote != nil {
		n, err = r.remote.Unschedulable(ctx, cluster, q.Of, q.Threshold)
	}
	return n, err
}

// waits has the descheduler look at what agents report, in time.
func (r *capacity) waits(profiled *waiting.Known) {
	if r.descheduler == nil {
		return
	}
	for of, since := range profiled.New() {
		r.descheduler.Soon(of, since)
	}
}
