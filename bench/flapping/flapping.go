package flapping

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Fleet is what is measured: a control plane with failover and two members.
type Fleet struct {
	Client client.WithWatch
	// Name is that of the member that comes and goes, and Member its process.
	Name   string
	Member *localfleet.Process
	// Namespace is one that the members have.
	Namespace string
	// Quiet waits until nothing was written for a time, and returns the revision then.
	Quiet func(ctx context.Context, still time.Duration) (int64, error)
}

const (
	// name is that of the policy, and begins those of the Deployments.
	name = "flap"
	// apps is how many Deployments run in the member.
	apps = 20
	// half is for how long the member is away, and then there, each time.
	half = 10 * time.Second
	// still is for how long nothing is written once all is over.
	still = 5 * time.Second
)

// sample is what was seen.
type sample struct {
	// Changes is how often the member went or came.
	Changes int `json:"changes"`
	// Statuses is how often the status of its Cluster was written, Turns how often that changed Ready, and Most how
	// often it was written within one change. Specs counts what else was written there.
	Statuses int `json:"statusWrites"`
	Turns    int `json:"turns"`
	Most     int `json:"mostInOneChange"`
	Specs    int `json:"otherWrites"`
	// Of counts the writes of the status by what they changed: "Ready", or "the rest" and what that is.
	Of map[string]int `json:"statusWritesByWhatChanged"`
	// Moves is how often a binding was to run elsewhere, or left a cluster.
	Moves int `json:"moves"`
	// Revision is how much was written in all.
	Revision int64 `json:"writes"`
}

// Measure has the member come and go for so long, and reports it as a row.
func Measure(ctx context.Context, f Fleet, lasts time.Duration, row string, r *results.Report) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if err := f.place(ctx); err != nil {
		return err
	}
	before, err := f.Quiet(ctx, still)
	if err != nil {
		return err
	}
	seen := &seen{of: f.Name, sample: sample{Of: map[string]int{}}}
	if err := seen.follow(ctx, f); err != nil {
		return err
	}
	if err := f.flap(ctx, lasts, seen); err != nil {
		return err
	}
	after, err := f.Quiet(ctx, still)
	if err != nil {
		return err
	}
	out := seen.end()
	out.Revision = after - before
	what := fmt.Sprintf("%d Deployments in a member that is %s away and %s there for %s: ", apps, half, half, lasts)
	r.AtMost(row, what+"moves", float64(out.Moves), "moves", 0)
	r.AtMost(row, what+"writes of the Cluster's status in one change, most", float64(out.Most), "writes", 1)
	r.Note(row, what+"changes", float64(out.Changes), "changes")
	r.Note(row, what+"writes of the Cluster's status", float64(out.Statuses), "writes")
	r.Note(row, what+"turns of Ready", float64(out.Turns), "turns")
	r.Note(row, what+"other writes of the Cluster", float64(out.Specs), "writes")
	r.Note(row, what+"writes in all", float64(out.Revision), "writes")
	return r.Raw(row, out)
}

// place has all Deployments run in the member, which may be moved to the other.
func (f Fleet) place(ctx context.Context) error {
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: name}},
			}},
			Placement: policyv1alpha1.Placement{
				ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
					{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.Name}}},
					{AffinityName: "others"},
				},
				SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
			},
		},
	}
	if err := f.Client.Create(ctx, policy); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	for i := range apps {
		labels := map[string]string{name: name}
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Namespace: f.Namespace, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels}, // healthy without pods
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
				},
			},
		}
		if err := f.Client.Create(ctx, d); err != nil {
			return fmt.Errorf("create a Deployment: %w", err)
		}
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var list workv1alpha2.ResourceBindingList
		if err := f.Client.List(ctx, &list, client.InNamespace(f.Namespace)); err != nil {
			return false, err
		}
		run := 0
		for i := range list.Items {
			if on := list.Items[i].Spec.Clusters; len(on) == 1 && on[0].Name == f.Name && len(list.Items[i].Status.AggregatedStatus) == 1 {
				run++
			}
		}
		return run == apps, nil
	})
	if err != nil {
		return fmt.Errorf("wait until all runs in %s: %w", f.Name, err)
	}
	return nil
}

// flap takes the member away and brings it back for so long; it is there at the end.
func (f Fleet) flap(ctx context.Context, lasts time.Duration, seen *seen) error {
	for begin := time.Now(); time.Since(begin) < lasts; {
		for _, change := range []func(context.Context) error{func(context.Context) error { return f.Member.Kill() }, f.again} {
			seen.change()
			if err := change(ctx); err != nil {
				return fmt.Errorf("end %s, or start it: %w", f.Name, err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(half):
			}
		}
	}
	return nil
}

// again has the member be there.
func (f Fleet) again(ctx context.Context) error {
	if err := f.Member.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return f.Member.Ready(ctx)
}

// seen counts what is written of a cluster, and of what runs there. Its methods may be called by several goroutines.
type seen struct {
	of string

	mu      sync.Mutex
	sample  sample
	within  int // status writes within this change
	cluster *clusterv1alpha1.Cluster
	runs    map[client.ObjectKey]workv1alpha2.ResourceBindingSpec
}

// change begins another one.
func (s *seen) change() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sample.Changes, s.within = s.sample.Changes+1, 0
}

func (s *seen) end() sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sample
}

// follow watches until ctx ends.
func (s *seen) follow(ctx context.Context, f Fleet) error {
	s.runs = map[client.ObjectKey]workv1alpha2.ResourceBindingSpec{}
	for _, list := range []client.ObjectList{&clusterv1alpha1.ClusterList{}, &workv1alpha2.ResourceBindingList{}} {
		w, err := f.Client.Watch(ctx, list) // begins with all that there is
		if err != nil {
			return fmt.Errorf("watch %T: %w", list, err)
		}
		go func() {
			defer w.Stop()
			for e := range w.ResultChan() {
				s.see(e)
			}
		}()
	}
	return nil
}

func (s *seen) see(e watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch is := e.Object.(type) {
	case *clusterv1alpha1.Cluster:
		s.ofCluster(is)
	case *workv1alpha2.ResourceBinding:
		key := client.ObjectKeyFromObject(is)
		was, known := s.runs[key]
		if known && (!equality.Semantic.DeepEqual(was.Clusters, is.Spec.Clusters) || len(is.Spec.GracefulEvictionTasks) > len(was.GracefulEvictionTasks)) {
			s.sample.Moves++
		}
		s.runs[key] = is.Spec
	}
}

func (s *seen) ofCluster(is *clusterv1alpha1.Cluster) {
	if is.Name != s.of {
		return
	}
	was := s.cluster
	s.cluster = is
	switch {
	case was == nil || was.ResourceVersion == is.ResourceVersion:
		return
	case equality.Semantic.DeepEqual(was.Status, is.Status):
		s.sample.Specs++
		return
	}
	s.sample.Statuses++
	s.within++
	what := "the rest: " + differs(was, is)
	if before, after := readiness(was), readiness(is); before.Status != after.Status || before.Reason != after.Reason || before.Message != after.Message {
		what = "Ready: " + after.Reason
		s.within = 1 // that it answers again, and then that it is ready, are two changes
	}
	s.sample.Of[what]++
	s.sample.Most = max(s.sample.Most, s.within)
	if readiness(was).Status != readiness(is).Status {
		s.sample.Turns++
	}
}

// differs names what two states of a status differ in: its conditions by their types, and its fields.
func differs(was, is *clusterv1alpha1.Cluster) string {
	var out []string
	for i := range is.Status.Conditions {
		after := is.Status.Conditions[i]
		if before := meta.FindStatusCondition(was.Status.Conditions, after.Type); before == nil || *before != after {
			out = append(out, after.Type+" "+string(after.Status)+" "+after.Reason)
		}
	}
	fields := func(c *clusterv1alpha1.Cluster) map[string]any {
		c = c.DeepCopy()
		c.Status.Conditions = nil
		all, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c.Status)
		if err != nil {
			return nil
		}
		return all
	}
	for i := range was.Status.Conditions {
		if before := was.Status.Conditions[i]; meta.FindStatusCondition(is.Status.Conditions, before.Type) == nil {
			out = append(out, "no "+before.Type)
		}
	}
	before, after := fields(was), fields(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !equality.Semantic.DeepEqual(before[name], after[name]) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

func readiness(c *clusterv1alpha1.Cluster) metav1.Condition {
	if r := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); r != nil {
		return *r
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}
