package life

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// moveGoals are for a cluster that fails, by how many Deployments there are.
var moveGoals = map[int]struct{ moved, writes float64 }{1000: {moved: 30, writes: 4}}

// moves is a fleet one of whose members must be left by all that runs in it.
type moves struct {
	*life
	from, to string
}

// MeasureMoves has n Deployments without pods run in the one member, moves them to the other by a taint, and back as that
// is killed. The control plane is one with failover.
func MeasureMoves(ctx context.Context, f Fleet, n int, r *results.Report) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l := &life{Fleet: f, n: n, report: r, row: "9"}
	if l.holdings, err = follow(ctx, f.Members, f.Namespace); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(f.Members))
	m := &moves{life: l, from: names[0], to: names[1]}
	for _, step := range []func(context.Context) error{m.begin, m.move, m.fail} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin has all of them run in the member that is to be left: the other one takes nothing until they do.
func (m *moves) begin(ctx context.Context) error {
	if err := m.taint(ctx, m.to, corev1.TaintEffectNoSchedule); err != nil {
		return err
	}
	policy := m.policy(1)
	policy.Spec.Placement = policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	if err := m.Client.Create(ctx, policy); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	err := m.each(ctx, func(ctx context.Context, d *appsv1.Deployment) error {
		d.Spec.Replicas, d.Spec.Paused = ptr.To[int32](0), false // healthy without pods
		return m.Client.Create(ctx, d)
	})
	if err != nil {
		return fmt.Errorf("create the Deployments: %w", err)
	}
	if err := m.until(ctx, map[string]int{m.from: m.n, m.to: 0}); err != nil {
		return err
	}
	if err := m.taint(ctx, m.to, ""); err != nil {
		return err
	}
	_, err = m.Quiet(ctx, still)
	return err
}

func (m *moves) move(ctx context.Context) error {
	var moved time.Duration
	c, err := m.measured(ctx, func(ctx context.Context) error { return m.taint(ctx, m.from, corev1.TaintEffectNoExecute) }, func(ctx context.Context) error {
		begin := time.Now()
		err := m.until(ctx, map[string]int{m.to: m.n})
		moved = time.Since(begin)
		if err != nil {
			return err
		}
		return m.until(ctx, map[string]int{m.from: 0, m.to: m.n})
	})
	if err != nil {
		return fmt.Errorf("move: %w", err)
	}
	m.record("moved off a cluster that is there: all stand elsewhere after", moved.Seconds(), "s", moveGoals[m.n].moved)
	m.record("moved off a cluster that is there: all have left it after", c.seconds, "s", 0)
	m.record("moved off a cluster that is there: writes each, until they have", c.writes, "writes", 0)
	m.recordWrites("moved off a cluster that is there: of these ", c.requests)
	m.record("moved off a cluster that is there: CPU time of the control plane", c.cpu, "s", 0)
	return nil
}

// fail has the member killed that all of them were moved to. What is to be removed there has to wait.
func (m *moves) fail(ctx context.Context) error {
	if err := m.taint(ctx, m.from, ""); err != nil {
		return err
	}
	fails := m.Processes[m.to]
	m.Processes = map[string]*localfleet.Process{m.from: m.Processes[m.from]} // of which CPU time is asked
	var templates appsv1.DeploymentList
	if err := m.Client.List(ctx, &templates, client.InNamespace(m.Namespace)); err != nil {
		return fmt.Errorf("list the Deployments: %w", err)
	}
	causes := newCauses(m.from, templates.Items)
	observed, err := observe(ctx, m.Client, causes.lists(m.Namespace), causes.see)
	if err != nil {
		return err
	}
	var first time.Time
	c, err := m.measured(ctx, func(context.Context) error { return fails.Kill() }, func(ctx context.Context) error {
		if err := m.count(ctx, func(have map[string]int) bool { return have[m.from] > 0 }); err != nil {
			return err
		}
		first = time.Now()
		return m.until(ctx, map[string]int{m.from: m.n})
	})
	if err := errors.Join(err, observed()); err != nil {
		return fmt.Errorf("move off a cluster that fails: %w", err)
	}
	const what = "moved off a cluster that fails: "
	m.record(what+"all stand elsewhere after the first one does", c.ended.Sub(first).Seconds(), "s", moveGoals[m.n].moved)
	m.recordCauses(what, c, causes)
	m.record(what+"CPU time of the control plane", c.cpu, "s", 0)
	return nil
}

// recordCauses reports the writes for each Deployment, and what they were for: in no kind is one left out.
func (m *moves) recordCauses(what string, c cost, causes *causes) {
	moves, starts := causes.written()
	n := float64(m.n)
	m.record(what+"writes each that the move takes, until its binding says that the new cluster has it", float64(moves)/n, "writes", moveGoals[m.n].writes)
	m.record(what+"writes each of what new copies report as they become healthy", float64(starts)/n, "writes", 0)
	m.record(what+"writes of the clusters' and the control plane's own meanwhile", c.writes*n-float64(moves+starts), "writes", 0)
	m.record(what+"writes each, all of these", c.writes, "writes", 0)
	m.recordWrites(what+"of these ", c.requests)
}

// taint has a member have a taint of this effect and none other of its key; none where that is empty.
func (m *moves) taint(ctx context.Context, member string, effect corev1.TaintEffect) error {
	const key = "bench"
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c := &clusterv1alpha1.Cluster{}
		if err := m.Client.Get(ctx, client.ObjectKey{Name: member}, c); err != nil {
			return err
		}
		c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		if effect != "" {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
		}
		return m.Client.Update(ctx, c)
	})
	if err != nil {
		return fmt.Errorf("taint %s: %w", member, err)
	}
	return nil
}

// until waits until members have so many Deployments.
func (m *moves) until(ctx context.Context, want map[string]int) error {
	return m.count(ctx, func(have map[string]int) bool {
		for member, n := range want {
			if have[member] != n {
				return false
			}
		}
		return true
	})
}

// count waits until members have as many Deployments as is enough.
func (m *moves) count(ctx context.Context, enough func(have map[string]int) bool) error {
	have := map[string]int{}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		have = m.holdings.count()
		return enough(have), nil
	})
	if err != nil {
		return fmt.Errorf("members have %v Deployments, which is not what is waited for: %w", have, err)
	}
	return nil
}
