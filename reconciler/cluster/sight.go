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

// ErrOutOfSight says that a member is not watched from here, or does not answer now.
var ErrOutOfSight = errors.New("the cluster is not in sight")

// Sight says what still fits in the members that the loop watches itself, by what their
// nodes, pods and quotas are at the moment. It asks nobody, and answers at once. It is
// safe for use by several goroutines.
type Sight struct {
	of      *Reconciler
	plugins []nodes.Plugin
}

// Sight returns that of r, by what the plugins count.
func (r *Reconciler) Sight(plugins ...nodes.Plugin) Sight { return Sight{r, plugins} }

// MaxReplicas returns how many replicas fit in the cluster that need as much, besides
// what is assumed to run there; MaxInt32 where nothing bounds them. It errs where the
// cluster is not in sight, and on a need that makes no sense.
func (s Sight) MaxReplicas(_ context.Context, cluster string, need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForReplicas(need, assumed)
	if err != nil {
		return 0, fmt.Errorf("count replicas for cluster %s: %w", cluster, err)
	}
	return s.most(cluster, ask)
}

// MaxSets returns how many sets of the components fit; see MaxReplicas.
func (s Sight) MaxSets(_ context.Context, cluster, namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (int32, error) {
	ask, err := nodes.AskForSets(namespace, components, assumed)
	if err != nil {
		return 0, fmt.Errorf("count sets of components for cluster %s: %w", cluster, err)
	}
	return s.most(cluster, ask)
}

// Unschedulable returns how many replicas of the workload wait in the cluster since the
// threshold, or longer, for a node in vain. It errs where the cluster is not in sight.
func (s Sight) Unschedulable(_ context.Context, cluster string, of workv1alpha2.ObjectReference, threshold time.Duration) (int32, error) {
	room, err := s.room(cluster)
	if err != nil {
		return 0, err
	}
	n, err := room.Unschedulable(of, threshold, s.of.options.Clock.Now())
	if err != nil {
		return 0, fmt.Errorf("count what waits in cluster %s: %w", cluster, err)
	}
	return n, nil
}

func (s Sight) most(cluster string, ask *nodes.Ask) (int32, error) {
	room, err := s.room(cluster)
	if err != nil {
		return 0, err
	}
	n, err := room.Most(ask, s.plugins...)
	if err != nil {
		return 0, fmt.Errorf("count what fits in cluster %s: %w", cluster, err)
	}
	return n, nil
}

// room returns what is known of a member that answers.
func (s Sight) room(cluster string) (*capacity.Room, error) {
	p := s.of.posts.of(cluster)
	if p == nil || p.seen == nil || !p.seen.ready {
		return nil, fmt.Errorf("%w: %s", ErrOutOfSight, cluster)
	}
	return &p.sight.room, nil
}
