package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// site is a cluster, what it runs of the template, and what the control plane has it run.
type site struct {
	*clusterv1alpha1.Cluster
	pull       bool // an agent works there
	up         bool // it is ready; else nothing is heard of it, or it answers again
	dead       bool // it is gone, and nobody knows
	work       bool // there is a Work
	asked      int32
	generation int64 // of the Work, which asks for that many replicas
	going      bool  // the Work is being deleted
	leave            // how that goes
	runs       bool
	replicas   int32
	ready      int32     // of those
	heard      int32     // how many were ready when the cluster was last ready
	since      time.Time // when it was last not well
	reported   workv1alpha1.WorkStatus
}

// well reports whether all replicas are ready.
func (s *site) well() bool { return s.replicas > 0 && s.ready == s.replicas }

// serves reports whether users of the template are known to be served here.
func (s *site) serves() bool { return s.answers() && s.runs && s.ready > 0 }

// mayServe reports whether users of the template are served here, as far as anybody knows.
func (s *site) mayServe() bool { return s.serves() || !s.answers() && s.runs && s.heard > 0 }

// as is the Work that is here, with what was reported of it last.
func (s *site) as() *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(s.Name), Name: "web", Generation: s.generation}, Status: s.reported}
	w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
	if s.going {
		w.DeletionTimestamp = &metav1.Time{}
	}
	return w
}

// tells has a cluster say what runs there, if it can: the truth of now.
func (s *site) observe() {
	reachable := s.answers() || !s.up && meta.FindStatusCondition(s.Status.Conditions, clusterv1alpha1.ClusterConditionReady).Reason == clusterv1alpha1.ClusterAnswersAgainReason
	switch {
	case !reachable || !s.work:
	case !s.runs:
		s.reported = workv1alpha1.WorkStatus{}
	default:
		if s.answers() {
			s.heard = s.ready
		}
		observed := s.generation
		if s.replicas != s.asked {
			observed--
		}
		health := workv1alpha1.ResourceUnhealthy
		if s.well() {
			health = workv1alpha1.ResourceHealthy
		}
		counts := fmt.Sprintf(`{"replicas":%d,"readyReplicas":%d}`, s.replicas, s.ready)
		if s.ready == 0 {
			counts = fmt.Sprintf(`{"replicas":%d}`, s.replicas)
		}
		s.reported = workv1alpha1.WorkStatus{
			Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: observed}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: health, Status: &runtime.RawExtension{Raw: []byte(counts)}}},
		}
	}
}

// life is a template whose clusters fail, fill up and come back, and the two loops that move it.
type life struct {
	*rand.Rand
	now   time.Time
	sites []*site
	b     *workv1alpha2.ResourceBinding
	opts  placement.Options
	// doubts is until when a binding loop that has just started believes no Work.
	doubts time.Time
	story  []string
	wrong  string
	seen   map[string]int // how often removals that were interrupted came to what
}

func newLife(seed uint64) *life {
	l := &life{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), seen: map[string]int{}}
	l.opts.Failover = failover.Rules{Taints: true, Tolerance: time.Minute}
	for i := range 2 + l.IntN(3) {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
		s := &site{Cluster: c, pull: l.IntN(2) == 0}
		l.sites = append(l.sites, s)
		l.room(s)
		l.back(s)
	}
	spec := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Replicas: 1 + l.Int32N(4), PropagateDeps: true,
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		Placement:           l.placement(),
	}
	switch l.IntN(4) {
	case 0:
		spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: ptr.To[int32](30)}, PurgeMode: policyv1alpha1.PurgeModeGracefully,
		}}
	case 1:
		spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}
	}
	if f := spec.Failover; f != nil && l.IntN(2) == 0 {
		f.FailBackSeconds = ptr.To(60 * l.Int32N(3))
	}
	l.b = &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}, Spec: spec}
	return l
}

func (l *life) placement() *policyv1alpha1.Placement {
	switch l.IntN(4) {
	case 0:
		return &policyv1alpha1.Placement{}
	case 1:
		return &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}}
	case 2:
		return &policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}}
	default:
		return &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}}
	}
}

// edits has somebody edit the policy: another division, and perhaps without one cluster.
func (l *life) edits(not *site) {
	l.b.Spec.Placement = l.placement()
	if l.IntN(2) == 0 {
		l.b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{not.Name}}
	}
	l.note("the policy is %s", placement.AppliedPlacement(l.b.Spec.Placement))
}

// site returns one of the clusters.
func (l *life) site() *site { return l.sites[l.IntN(len(l.sites))] }

func (l *life) of(name string) *site {
	for _, s := range l.sites {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (l *life) note(format string, args ...any) {
	l.story = append(l.story, l.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// happens is one thing that anybody but the loops may do.
func (l *life) happens() {
	s := l.site()
	if leaving := l.works(func(s *site) bool { return s.going }); len(leaving) > 0 && l.IntN(2) == 0 {
		l.interrupts(leaving[l.IntN(len(leaving))], s)
		return
	}
	switch l.IntN(17) {
	case 16:
		l.dies(s)
	case 15:
		l.starts(s)
	case 14:
		l.restarts()
	case 13:
		l.b.Spec.RescheduleTriggeredAt = ptr.To(metav1.NewTime(l.now))
		l.note("somebody wants it to be placed anew")
	case 12:
		if !s.up {
			l.ready(s, metav1.ConditionFalse, clusterv1alpha1.ClusterAnswersAgainReason)
			l.note("%s answers again", s.Name)
		}
	case 11:
		l.unheard(s)
	case 10:
		l.toggle(s, failover.DrainTaint())
	case 9:
		l.edits(s)
	case 0:
		l.toggle(s, corev1.Taint{Key: "drill", Effect: corev1.TaintEffectNoExecute})
	case 1:
		l.lost(s)
	case 2:
		l.back(s)
	case 3:
		if s.answers() && s.runs {
			l.turns(s, l.Int32N(s.replicas+1))
		}
	case 4:
		if s.answers() && s.runs {
			l.turns(s, s.replicas)
		}
	case 5:
		l.room(s)
	case 6:
		l.asks(s)
	default:
		l.passes([]time.Duration{time.Second, 20 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute}[l.IntN(5)])
	}
}

func (l *life) passes(d time.Duration) {
	l.now = l.now.Add(d)
	l.note("%s later", d)
}

// toggle gives a cluster a taint that it does not have, or takes it away.
func (l *life) toggle(s *site, taint corev1.Taint) {
	c := s.DeepCopy()
	before := len(c.Spec.Taints)
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
	if len(c.Spec.Taints) == before {
		taint.TimeAdded = ptr.To(metav1.NewTime(l.now))
		c.Spec.Taints = append(c.Spec.Taints, taint)
	}
	s.Cluster = c
	l.note("%s has the taints %v", s.Name, c.Spec.Taints)
}

func (l *life) ready(s *site, status metav1.ConditionStatus, reason string) {
	c := s.DeepCopy()
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(l.now)})
	c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintClusterNotReady })
	if status != metav1.ConditionTrue {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.NewTime(l.now))})
	}
	s.Cluster, s.up = c, status == metav1.ConditionTrue
}

func (l *life) lost(s *site) {
	if s.up {
		s.observe()
		l.ready(s, metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason)
		s.dead = false
		s.breaks()
		l.note("%s is lost", s.Name)
	}
}

func (l *life) back(s *site) {
	if !s.answers() {
		l.ready(s, metav1.ConditionTrue, "ClusterReady")
		s.dead = false
		l.note("%s is there", s.Name)
	}
}

func (l *life) turns(s *site, ready int32) {
	if s.well() && ready < s.replicas {
		s.since = l.now
	}
	s.ready = ready
	l.note("%d of %d are ready in %s", ready, s.replicas, s.Name)
}

func (l *life) room(s *site) {
	c, room := s.DeepCopy(), int64(l.IntN(6))
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(100, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(room, resource.DecimalSI)}}
	s.Cluster = c
	l.note("%s has room for %d", s.Name, room)
}

// asks has somebody write an eviction task by hand, in any state that the schema allows.
func (l *life) asks(s *site) {
	task := workv1alpha2.GracefulEvictionTask{FromCluster: s.Name, Producer: "somebody", Reason: "Tried", PurgeMode: policyv1alpha1.PurgeModeGracefully}
	if l.IntN(8) == 0 {
		task.FromCluster = "nowhere"
	}
	if l.IntN(2) == 0 {
		task.CreationTimestamp = ptr.To(metav1.NewTime(l.now.Add(-time.Duration(l.IntN(30)) * time.Minute)))
	}
	if l.IntN(3) == 0 {
		task.GracePeriodSeconds = ptr.To(int32(l.IntN(100) - 10))
	}
	l.b.Spec.GracefulEvictionTasks = append(slices.Clone(l.b.Spec.GracefulEvictionTasks), task)
	l.note("somebody asks to leave %s", task.FromCluster)
}

// reports is what the status of the binding says of its clusters: the last that was heard.
func (l *life) reports() {
	var out []workv1alpha2.AggregatedStatusItem
	for _, s := range l.sites {
		if s.observe(); !s.work || len(s.reported.ManifestStatuses) == 0 {
			continue
		}
		item := workv1alpha2.AggregatedStatusItem{ClusterName: s.Name, Applied: true, Health: workv1alpha2.ResourceHealthy}
		if s.reported.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
			item.Health, item.UnhealthySince = workv1alpha2.ResourceUnhealthy, ptr.To(metav1.NewTime(s.since))
		}
		out = append(out, item)
	}
	l.b.Status.AggregatedStatus = out
}

// schedules has the scheduler look at the binding, and write what it decides.
func (l *life) schedules() bool {
	l.reports()
	clusters := make([]*clusterv1alpha1.Cluster, len(l.sites))
	for i, s := range l.sites {
		clusters[i] = s.Cluster
	}
	d, changed := placement.Decide(l.b, placement.Situation{Clusters: placement.NewSnapshot(clusters), Now: l.now}, l.opts)
	if changed {
		b := l.b.DeepCopy()
		d.Put(b)
		l.b = b
		l.note("decided (%s): %s; leaves %s; %v", d.Why, placement.Text(d.Clusters), leavesText(d.Evictions), d.Err)
	}
	return changed
}

func leavesText(tasks []workv1alpha2.GracefulEvictionTask) string {
	var out []string
	for i := range tasks {
		out = append(out, fmt.Sprintf("%s %s by %s", tasks[i].FromCluster, tasks[i].PurgeMode, tasks[i].Producer))
	}
	return strings.Join(out, ", ")
}

// carries has the binding loop look at the binding: it writes Works, ends eviction tasks, and
// deletes what is not kept.
func (l *life) carries() {
	spec := &l.b.Spec
	l.recalls()
	first := plan.LeaveFirst(spec)
	if waits := l.works(func(s *site) bool { return slices.Contains(first, s.Name) }); len(waits) > 0 {
		for _, s := range waits {
			l.withdraws(s, true)
		}
		return
	}
	for _, t := range plan.Targets(spec) {
		if s := l.of(t.Name); s != nil && !s.going {
			if !s.work || s.asked != t.Replicas {
				s.generation++
			}
			s.work, s.asked = true, t.Replicas
		}
	}
	for _, s := range l.sites {
		s.observe()
	}
	is := func(name string) bool {
		s := l.of(name)
		return s != nil && s.work && s.answers() && rollup.Ready(s.as()) && !l.now.Before(l.doubts)
	}
	tasks, ended, _ := eviction.Ending{
		HasWork: func(name string) bool { return len(l.works(func(s *site) bool { return s.Name == name })) > 0 },
		Ready:   is,
		Serves: func(name string, whole bool) bool {
			s := l.of(name)
			return s != nil && s.work && rollup.Serves(s.as(), s.answers() && !l.now.Before(l.doubts), whole)
		},
		Gone: func(name string) bool { return l.of(name) == nil },
		Away: func(name string) bool {
			s := l.of(name)
			return s != nil && failover.Away(s.Cluster)
		},
		Scheduled: placement.Answered(l.b), Now: l.now,
	}.Of(spec)
	if len(ended) > 0 {
		l.note("has left %v", ended)
	}
	direct := map[string]bool{}
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		direct[task.FromCluster] = direct[task.FromCluster] || task.PurgeMode == policyv1alpha1.PurgeModeDirectly
	}
	spec.GracefulEvictionTasks = tasks
	keeps := plan.Keeps(spec)
	for _, s := range l.works(func(s *site) bool { return !slices.Contains(keeps, s.Name) }) {
		l.withdraws(s, direct[s.Name] || spec.Failover != nil && spec.Failover.Cluster != nil)
	}
}

// works returns the clusters that have a Work which f takes.
func (l *life) works(f func(*site) bool) []*site {
	var out []*site
	for _, s := range l.sites {
		if s.work && f(s) {
			out = append(out, s)
		}
	}
	return out
}

// withdraws deletes a Work. That must not be the last copy that serves, unless the policy says
// that two must never run at once.
func (l *life) withdraws(s *site, directly bool) {
	if s.going {
		return
	}
	if s.mayServe() && !directly && !l.servesBeside(s) {
		l.wrong = "the last copy that serves is taken, in " + s.Name
	}
	l.note("withdrawn from %s", s.Name)
	s.going, s.leave = true, leave{directly: directly, broken: !s.answers(), undisturbed: s.answers()}
}

// servesBeside reports whether users of the template are known to be served elsewhere than in a cluster.
func (l *life) servesBeside(s *site) bool {
	return len(l.works(func(o *site) bool { return o != s && !o.going && o.serves() })) > 0
}

// act has the clusters do what is asked of them. What is started may be well at once.
func (l *life) act(sound bool) {
	for _, s := range l.sites {
		switch {
		case !s.answers() || !s.work:
		case s.going:
			if l.goes(s) {
				l.takes(s)
				s.work, s.going, s.leave, s.runs, s.replicas, s.ready, s.heard, s.reported = false, false, leave{}, false, 0, 0, 0, workv1alpha1.WorkStatus{}
			}
		case !s.runs:
			s.runs, s.replicas, s.since = true, s.asked, l.now
			if s.ready = s.replicas; !sound && l.IntN(2) == 0 {
				s.ready = l.Int32N(s.replicas + 1)
			}
		default:
			if s.well() || sound {
				s.ready = s.asked
			}
			s.replicas, s.ready = s.asked, min(s.ready, s.asked)
		}
	}
}

// loops has what runs in the control plane do something, in any order.
func (l *life) loops() {
	switch l.IntN(5) {
	case 0:
		l.carries()
	case 1:
		l.act(false)
	case 2:
		l.confirms()
	default:
		l.schedules()
	}
}

// rests has all be well, and time pass, until nothing is to be done any more.
func (l *life) rests() {
	for _, s := range l.sites {
		l.back(s)
		c := s.DeepCopy()
		c.Spec.Taints = nil
		c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU] = *resource.NewQuantity(50, resource.DecimalSI)
		s.Cluster = c
	}
	l.b.Spec.Placement.ClusterAffinity = nil
	l.note("all is well from here on")
	for range 60 {
		l.schedules()
		l.carries()
		l.act(true)
		l.confirms()
		l.now = l.now.Add(time.Minute)
	}
	tasks := l.b.Spec.GracefulEvictionTasks
	if record, _ := placement.RecordOf(l.b); record.Stays != nil { // it is told that what was asked for cannot be
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(task workv1alpha2.GracefulEvictionTask) bool {
			return task.Producer == "somebody" && slices.ContainsFunc(l.b.Spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == task.FromCluster })
		})
	}
	switch {
	case l.wrong != "":
	case len(tasks) > 0:
		l.wrong = fmt.Sprintf("after an hour these go on: %s", leavesText(tasks))
	case len(l.b.Spec.Clusters) == 0:
		l.wrong = "it runs nowhere"
	case len(l.works(func(s *site) bool { return s.going })) > 0:
		l.wrong = "after an hour it is still being removed"
	case l.schedules():
		l.wrong = "it is decided anew each time"
	}
}

// TestNoLifeTakesTheLastCopy: whatever happens to clusters, in push or in pull mode, to a template and to its tasks, in
// whatever order the loops come to it, and whatever interrupts them, who moves it never takes the last copy that serves, and
// each task, and each removal, comes to its end. All that the loops remember is in the binding: any of them may be
// another process.
func TestNoLifeTakesTheLastCopy(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(600) {
		l := newLife(seed)
		for range 80 {
			l.happens()
			for range 1 + l.IntN(3) {
				l.loops()
			}
			if l.wrong != "" {
				break
			}
		}
		if l.wrong == "" {
			l.rests()
		}
		if l.wrong != "" {
			from := max(0, len(l.story)-60)
			t.Fatalf("seed %d: %s; placed in %s\n%+v\n%s", seed, l.wrong, placement.Text(l.b.Spec.Clusters), l.b.Spec.Placement, strings.Join(l.story[from:], "\n"))
		}
		for what, n := range l.seen {
			seen[what] += n
		}
	}
	for _, what := range []string{"goes in push mode", "stays in push mode", "goes in pull mode", "stays in pull mode"} {
		if seen[what] < 20 {
			t.Errorf("a removal that was interrupted %s %d times in all lives: that says nothing", what, seen[what])
		}
	}
	t.Log(seen)
}
