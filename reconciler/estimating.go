package reconciler

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
	"github.com/flotilla-io/flotilla/reconciler/decider"
)

// Estimator says what fits in clusters, and what waits there, by who sees their nodes. An
// error means that nothing is known.
type Estimator interface {
	decider.Estimator
	// Unschedulable counts the replicas that wait for so long, or longer, for a node.
	Unschedulable(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error)
}

// Estimates says who is asked what fits in clusters. The zero value asks about those that
// this process watches itself.
type Estimates struct {
	// Reported counts by what clusters report alone: nobody is asked.
	Reported bool
	// Least counts the least of what a cluster reports and of what was answered about it,
	// as Karmada does; otherwise the answer overrules.
	Least bool
	// Plugins bound what fits in clusters that this process watches, besides the built-in
	// ones.
	Plugins []nodes.Plugin
	// Remote makes who is asked about all other clusters; nil: nobody is.
	Remote func(mgr ctrl.Manager) (Estimator, error)
	// Patience is how long that may take; zero means decider.DefaultPatience.
	Patience time.Duration
}

// estimators finds who is asked; it is called before the decider is made.
func (f *fleet) estimators(mgr ctrl.Manager) (decider.Estimators, error) {
	of := &f.opts.Scheduling.Estimates
	out := decider.Estimators{Patience: of.Patience}
	if of.Reported {
		return out, nil
	}
	f.sight.plugins = append(f.sight.plugins, nodes.Resources{})
	if !f.opts.Scheduling.Off.MemberQuotas {
		f.sight.plugins = append(f.sight.plugins, nodes.Quotas{})
	}
	f.sight.plugins = append(f.sight.plugins, of.Plugins...)
	if f.chosen["cluster"] {
		out.InSight = &f.sight
	}
	if of.Remote == nil {
		return out, nil
	}
	var err error
	if f.remote, err = of.Remote(mgr); err != nil {
		return out, err
	}
	out.Remote = f.remote
	return out, nil
}

// sight is what the cluster loop sees, once there is one.
type sight struct {
	plugins []nodes.Plugin
	cluster *cluster.Reconciler // nil: there is none yet
}

func (s *sight) of() (cluster.Sight, error) {
	if s.cluster == nil {
		return cluster.Sight{}, cluster.ErrOutOfSight
	}
	return s.cluster.Sight(s.plugins...), nil
}

// MaxReplicas implements Estimator.
func (s *sight) MaxReplicas(ctx context.Context, name string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.MaxReplicas(ctx, name, need, assumed)
}

// MaxSets implements Estimator.
func (s *sight) MaxSets(ctx context.Context, name, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.MaxSets(ctx, name, namespace, components, assumed)
}

// Unschedulable implements Estimator.
func (s *sight) Unschedulable(ctx context.Context, name string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	is, err := s.of()
	if err != nil {
		return 0, err
	}
	return is.Unschedulable(ctx, name, of, threshold)
}

// waiters counts what waits in a cluster, by who sees its pods.
func (f *fleet) waiters(ctx context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	n, err := f.sight.Unschedulable(ctx, cluster, of, threshold)
	if err != nil && f.remote != nil {
		return f.remote.Unschedulable(ctx, cluster, of, threshold)
	}
	return n, err
}
