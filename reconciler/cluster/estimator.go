package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

// ErrNotWatched says that a member is not watched from here, or does not answer now.
var ErrNotWatched = errors.New("the cluster is not in sight")

// Estimator counts what still fits in the members that the loop watches itself, by what their
// nodes, pods and quotas are now. It sends no request, and answers at once. It is
// safe for use by several goroutines.
type Estimator struct {
	of      *Reconciler
	plugins []nodes.Plugin
}

// Estimator returns the estimator of r, which counts by the plugins.
func (r *Reconciler) Estimator(plugins ...nodes.Plugin) Estimator { return Estimator{r, plugins} }

// MaxReplicas returns how many replicas fit in the cluster that need as much, besides
// what is assumed to run there; MaxInt32 where nothing bounds them. It returns an error where the
// cluster is not watched from here, and on a need that makes no sense.
func (s Estimator) MaxReplicas(_ context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForReplicas(need, assumed)
	if err != nil {
		return 0, fmt.Errorf("count replicas for cluster %s: %w", cluster, err)
	}
	return s.most(cluster, ask)
}

// MaxSets returns how many sets of the components fit; see MaxReplicas.
func (s Estimator) MaxSets(_ context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForSets(namespace, components, assumed)
	if err != nil {
		return 0, fmt.Errorf("count sets of components for cluster %s: %w", cluster, err)
	}
	return s.most(cluster, ask)
}

// Unschedulable returns how many replicas of the workload wait in the cluster since the
// threshold, or longer, for a node in vain. It errs where the cluster is not watched from here.
func (s Estimator) Unschedulable(_ context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	tracker, err := s.tracker(cluster)
	if err != nil {
		return 0, err
	}
	n, err := tracker.Unschedulable(of, threshold, s.of.opts.Clock.Now())
	if err != nil {
		return 0, fmt.Errorf("count what waits in cluster %s: %w", cluster, err)
	}
	return n, nil
}

// ReadNodes calls read with the nodes and quotas of the cluster, which must not be kept. It errs
// where the cluster is not watched from here.
func (s Estimator) ReadNodes(cluster string, read func(*nodes.Index)) error {
	tracker, err := s.tracker(cluster)
	if err != nil {
		return err
	}
	return tracker.Read(read)
}

func (s Estimator) most(cluster string, ask *nodes.Ask) (int32, error) {
	tracker, err := s.tracker(cluster)
	if err != nil {
		return 0, err
	}
	n, err := tracker.Most(ask, s.plugins...)
	if err != nil {
		return 0, fmt.Errorf("count what fits in cluster %s: %w", cluster, err)
	}
	return n, nil
}

// tracker returns what is known of a member that answers.
func (s Estimator) tracker(cluster string) (*capacity.Tracker, error) {
	p := s.of.watches.get(cluster)
	if p == nil || p.seen == nil || !p.seen.ready {
		return nil, fmt.Errorf("%w: %s", ErrNotWatched, cluster)
	}
	return &p.observed.tracker, nil
}
