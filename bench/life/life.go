package life

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/bench/requests"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Fleet is what is measured: a control plane with two members.
type Fleet struct {
	Hub    *localfleet.Process
	Client client.WithWatch
	// Requests are what the control plane has answered so far.
	Requests func(ctx context.Context) (requests.Counts, error)
	Members  map[string]kubernetes.Interface
	// Processes are those of the members, by name: what they take is the measure of the machine.
	Processes map[string]*localfleet.Process
	// Namespace is one that the members have.
	Namespace string
	// Quiet waits until nothing was written for a time, and returns the revision then.
	Quiet func(ctx context.Context, still time.Duration) (int64, error)
}

const (
	// name is that of the policy, and begins those of the Deployments.
	name = "life"
	// still is for how long nothing is written once a step is over.
	still = 3 * time.Second
	// rest is how long nothing happens.
	rest = time.Minute
	// writers is how many requests a user who makes many objects sends side by side.
	writers = 8
)

// bounds are the goals for a number of Deployments; 0: there is none.
type bounds struct{ propagateCPU, idleCPU, resident, killed, weigh, remove float64 }

// goals are by how many Deployments there are.
var goals = map[int]bounds{
	200:  {propagateCPU: 5, idleCPU: 0.6, resident: 600, killed: 5},
	1000: {resident: 800, weigh: 20, remove: 12},
}

// life is a fleet through one measurement.
type life struct {
	Fleet
	n        int
	holdings *holdings
	report   *results.Report
	goals    bounds
	row      string // of the report
}

// Measure takes n Deployments without pods through their life.
func Measure(ctx context.Context, f Fleet, n int, r *results.Report) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	l := &life{Fleet: f, n: n, report: r, goals: goals[n], row: "life"}
	if l.holdings, err = follow(ctx, f.Members, f.Namespace); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{l.propagate, l.rest, l.weigh, l.kill, l.remove} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cost is what a step took.
type cost struct {
	seconds, cpu, writes float64
	beside               float64 // CPU time of the members, in seconds
	ended                time.Time
	requests             requests.Counts
}

// measured does something, until what it leads to is there and nothing is written any more.
func (l *life) measured(ctx context.Context, do, until func(context.Context) error) (cost, error) {
	before, err := l.Quiet(ctx, still)
	if err != nil {
		return cost{}, err
	}
	used, err := usage.CPUSeconds(l.Hub.PID())
	if err != nil {
		return cost{}, err
	}
	usedBeside, err := l.besides()
	if err != nil {
		return cost{}, err
	}
	answered, err := l.Requests(ctx)
	if err != nil {
		return cost{}, err
	}
	begin := time.Now()
	if err := errors.Join(do(ctx), until(ctx)); err != nil {
		return cost{}, err
	}
	ended := time.Now()
	after, err := l.Quiet(ctx, still)
	if err != nil {
		return cost{}, err
	}
	now, err := usage.CPUSeconds(l.Hub.PID())
	nowBeside, besideErr := l.besides()
	nowAnswered, answeredErr := l.Requests(ctx)
	return cost{
		ended.Sub(begin).Seconds(), now - used, float64(after-before) / float64(l.n), nowBeside - usedBeside, ended, nowAnswered.Since(answered),
	}, errors.Join(err, besideErr, answeredErr)
}

// besides returns the CPU time that the members have taken so far, in seconds.
func (l *life) besides() (float64, error) {
	var sum float64
	for _, member := range l.Processes {
		used, err := usage.CPUSeconds(member.PID())
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// recordWrites reports which writes there were for each Deployment, and leaves out those of which there was one for a
// hundred at most.
func (l *life) recordWrites(what string, all requests.Counts) {
	for _, w := range all.Writes() {
		if each := w.Number / float64(l.n); each > 0.01 {
			l.record(what+w.What, each, "writes", 0)
		}
	}
}

// record reports a figure, with its goal if there is one.
func (l *life) record(what string, value float64, unit string, goal float64) {
	what = fmt.Sprintf("%d × %d: %s", l.n, len(l.Members), what)
	if goal == 0 {
		l.report.Note(l.row, what, value, unit)
		return
	}
	l.report.AtMost(l.row, what, value, unit, goal)
}

func (l *life) propagate(ctx context.Context) error {
	c, err := l.measured(ctx, func(ctx context.Context) error {
		if err := l.Client.Create(ctx, l.policy(1)); err != nil {
			return fmt.Errorf("create the policy: %w", err)
		}
		return l.each(ctx, func(ctx context.Context, d *appsv1.Deployment) error { return l.Client.Create(ctx, d) })
	}, func(ctx context.Context) error {
		return l.holdings.all(ctx, l.n, func(_ string, d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
	})
	if err != nil {
		return fmt.Errorf("propagate: %w", err)
	}
	resident, err := usage.ResidentMiB(l.Hub.PID())
	l.record("propagated after", c.seconds, "s", 0)
	l.record("CPU time of the control plane to propagate", c.cpu, "s", l.goals.propagateCPU)
	l.record("CPU time of the members beside that", c.beside, "s", 0)
	l.record("writes to propagate, each", c.writes, "writes", 0)
	l.record("resident memory once they are", resident, "MiB", l.goals.resident)
	return err
}

func (l *life) rest(ctx context.Context) error {
	c, err := l.measured(ctx, func(context.Context) error { return nil }, func(ctx context.Context) error {
		select {
		case <-time.After(rest - still):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return fmt.Errorf("rest: %w", err)
	}
	resident, err := usage.ResidentMiB(l.Hub.PID())
	l.record("CPU time of the control plane in a minute of rest", c.cpu, "s", l.goals.idleCPU)
	l.record("writes in a minute of rest", c.writes*float64(l.n), "writes", 0)
	l.record("resident memory after that", resident, "MiB", l.goals.resident)
	return err
}

// weigh has two of four replicas of each Deployment move from one member to the other.
func (l *life) weigh(ctx context.Context) error {
	c, err := l.measured(ctx, func(ctx context.Context) error {
		if err := l.Client.Patch(ctx, l.policy(3), client.Merge); err != nil {
			return fmt.Errorf("change the weights: %w", err)
		}
		return nil
	}, func(ctx context.Context) error {
		return l.holdings.all(ctx, l.n, func(member string, d *appsv1.Deployment) bool {
			return *d.Spec.Replicas == map[bool]int32{true: 3, false: 1}[member == l.heavy()]
		})
	})
	l.record("other weights, moved after", c.seconds, "s", l.goals.weigh)
	l.record("other weights, writes each", c.writes, "writes", 0)
	l.record("other weights, CPU time of the control plane", c.cpu, "s", 0)
	return err
}

// kill has the control plane killed, and times a change that is made once it answers.
func (l *life) kill(ctx context.Context) error {
	if _, err := l.Quiet(ctx, still); err != nil {
		return err
	}
	begin := time.Now()
	if err := errors.Join(l.Hub.Kill(), l.Hub.Start()); err != nil {
		return err
	}
	if err := l.Hub.Ready(ctx); err != nil {
		return err
	}
	ready := time.Since(begin)
	d := l.deployment(0)
	if err := l.Client.Patch(ctx, d, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"changed":"yes"}}}`))); err != nil {
		return fmt.Errorf("change a Deployment: %w", err)
	}
	err := l.holdings.all(ctx, l.n, func(_ string, got *appsv1.Deployment) bool {
		return got.Name != d.Name || got.Labels["changed"] == "yes"
	})
	l.record("killed, and ready again after", ready.Seconds(), "s", 0)
	l.record("killed, and a change is in all members after", time.Since(begin).Seconds(), "s", l.goals.killed)
	return err
}

func (l *life) remove(ctx context.Context) error {
	aside, err := l.countAside(ctx)
	if err != nil {
		return err
	}
	c, err := l.measured(ctx, func(ctx context.Context) error {
		return l.each(ctx, func(ctx context.Context, d *appsv1.Deployment) error { return l.Client.Delete(ctx, d) })
	}, func(ctx context.Context) error {
		return l.holdings.all(ctx, 0, func(string, *appsv1.Deployment) bool { return false })
	})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	l.record("deleted, and gone from all members after", c.seconds, "s", l.goals.remove)
	others, err := aside()
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	l.record("deleted, writes each", c.writes-float64(others)/float64(l.n), "writes", 5)
	l.record("deleted, writes of the policy's counts, and of the run", float64(others), "writes", 0)
	l.record("deleted, CPU time of the control plane", c.cpu, "s", 0)
	if err := l.Client.Delete(ctx, l.policy(1)); err != nil {
		return fmt.Errorf("delete the policy: %w", err)
	}
	return nil
}

// aside are what is written by the time, or once for each run of a control plane, and not for
// each Deployment: how many the policy carries, and which run writes to members.
func (l *life) aside() map[client.ObjectList][]client.ListOption {
	return map[client.ObjectList][]client.ListOption{
		&policyv1alpha1.PropagationPolicyList{}: {client.InNamespace(l.Namespace), client.MatchingFields{"metadata.name": name}},
		&corev1.NamespaceList{}:                 {client.MatchingFields{"metadata.name": metav1.NamespaceSystem}},
	}
}

// countAside counts the writes of those, until the function that it returns is called. That
// errs where a watch did not hear of all.
func (l *life) countAside(ctx context.Context) (func() (int, error), error) {
	var total atomic.Int64
	end, err := observe(ctx, l.Client, l.aside(), func(watch.Event) { total.Add(1) })
	if err != nil {
		return nil, err
	}
	return func() (int, error) {
		err := end()
		return int(total.Load()), err
	}, nil
}

// each does something with each Deployment, a few at a time.
func (l *life) each(ctx context.Context, do func(context.Context, *appsv1.Deployment) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range l.n {
		group.Go(func() error { return do(ctx, l.deployment(i)) })
	}
	return group.Wait()
}

// deployment is one of four replicas without pods.
func (l *life) deployment(i int) *appsv1.Deployment {
	id := fmt.Sprintf("%s-%d", name, i)
	match, replicas := map[string]string{"app": id}, int32(4)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: l.Namespace, Labels: map[string]string{name: name}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Paused: true, Selector: &metav1.LabelSelector{MatchLabels: match},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: match},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
			},
		},
	}
}

// heavy is the member whose weight changes.
func (l *life) heavy() string {
	first := ""
	for member := range l.Members {
		if first == "" || member < first {
			first = member
		}
	}
	return first
}

// policy divides the Deployments; weight is that of the heavy member, beside 1.
func (l *life) policy(weight int64) *policyv1alpha1.PropagationPolicy {
	weights := &policyv1alpha1.ClusterPreferences{}
	for member := range l.Members {
		w := policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{member}}, Weight: 1}
		if member == l.heavy() {
			w.Weight = weight
		}
		weights.StaticWeightList = append(weights.StaticWeightList, w)
	}
	return &policyv1alpha1.PropagationPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: "PropagationPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.Namespace},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: name}},
			}},
			Placement: policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
				ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted, WeightPreference: weights,
			}},
		},
	}
}
