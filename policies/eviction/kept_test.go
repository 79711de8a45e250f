package eviction_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/eviction"
)

func moved(from, until string, before ...string) workv1alpha2.GracefulEvictionTask {
	return workv1alpha2.GracefulEvictionTask{
		FromCluster: from, PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "Moved", Producer: "Scheduler",
		Message: "kept until " + until, ClustersBeforeFailover: before,
	}
}

// TestUnfinished checks when a task of the scheduler ends.
func TestUnfinished(t *testing.T) {
	ofA, ofStaying := moved("a", "b is healthy", "a", "d"), moved("a", "one of d, e is healthy", "a", "d", "e")
	atOnce := ofA
	atOnce.PurgeMode = policyv1alpha1.PurgeModeDirectly
	cases := map[string]struct {
		task  workv1alpha2.GracefulEvictionTask
		runs  string // where it is placed
		holds string // which clusters have a Work
		ready string // and a healthy copy
		// says is the purge mode of the policy.
		says policyv1alpha1.PurgeMode
		ends bool
	}{
		"refused, suspended or not healthy yet":           {task: ofA, runs: "b", holds: "a b"},
		"not even sent":                                   {task: ofA, runs: "b", holds: "a"},
		"healthy elsewhere":                               {task: ofA, runs: "b", holds: "a b", ready: "b", ends: true},
		"one of two that replace it":                      {task: ofA, runs: "b c", holds: "a b c", ready: "b"},
		"both of them":                                    {task: ofA, runs: "b c", holds: "a b c", ready: "b c", ends: true},
		"one that ran it before is ill for other reasons": {task: ofA, runs: "b d", holds: "a b d", ready: "b", ends: true},
		"what stays does not have it":                     {task: ofA, runs: "d", holds: "a d"},
		"what stays has it":                               {task: ofA, runs: "d", holds: "a d", ready: "d", ends: true},
		"one of two that stay has it":                     {task: ofStaying, runs: "d e", holds: "a d e", ready: "e", ends: true},
		"there is no place for it":                        {task: ofA, runs: "", holds: "a"},
		"what was kept is gone":                           {task: ofA, runs: "b", holds: "b", ends: true},
		"the policy says Directly by now":                 {task: ofA, runs: "b", holds: "a b", says: policyv1alpha1.PurgeModeDirectly, ends: true},
		"the policy says Gracefully":                      {task: ofA, runs: "b", holds: "a b", says: policyv1alpha1.PurgeModeGracefully},
		"left first, and still there":                     {task: atOnce, runs: "b", holds: "a", ready: "b", says: policyv1alpha1.PurgeModeDirectly},
		"left first, and gone":                            {task: atOnce, runs: "b", says: policyv1alpha1.PurgeModeDirectly, ends: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := func(list string) func(string) bool {
				return func(cluster string) bool { return strings.Contains(list, cluster) }
			}
			spec := &workv1alpha2.ResourceBindingSpec{Clusters: targets(tc.runs), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tc.task}}
			if tc.says != "" {
				spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: tc.says}}
			}
			tasks, ended, _ := eviction.Ending{HasWork: in(tc.holds), Ready: in(tc.ready)}.Of(spec)
			if got := len(ended) == 1 && len(tasks) == 0; got != tc.ends || len(ended)+len(tasks) != 1 {
				t.Errorf("goes on: %v, ended: %v; want the end: %t", tasks, ended, tc.ends)
			}
		})
	}
}

func TestKept(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters: targets("b c d e f g h"),
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{moved("a", "", "a"), moved("x", "", "b", "c", "d", "e", "f"), moved("y", "", "b", "c", "d", "e", "f", "g"),
			moved("z", "", "b", "c", "d", "e", "f", "g", "h", "z"), {FromCluster: "w", PurgeMode: policyv1alpha1.PurgeModeNever},
		},
	}
	var got []string
	for _, k := range eviction.KeptBy(spec) {
		got = append(got, k.String())
	}
	want := []string{"kept in a until b, c, d, e, f and 2 more are healthy", "kept in x until g, h are healthy", "kept in y until h is healthy", "kept in z until one of b, c, d, e, f and 2 more is healthy", "kept in w until its eviction task says suppressDeletion: false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestKeptSaysWhatIsSo checks that a template that cannot be moved is not shown
// as moved, and that the text has the time by which a task will end, if it will.
func TestKeptSaysWhatIsSo(t *testing.T) {
	since := time.Date(2026, 1, 2, 6, 11, 4, 0, time.UTC)
	task := func(edit ...func(*workv1alpha2.GracefulEvictionTask)) workv1alpha2.GracefulEvictionTask {
		out := workv1alpha2.GracefulEvictionTask{FromCluster: "a", Reason: "x", Producer: "somebody", CreationTimestamp: ptr.To(metav1.NewTime(since)), GracePeriodSeconds: ptr.To[int32](600)}
		for _, f := range edit {
			f(&out)
		}
		return out
	}
	never := func(t *workv1alpha2.GracefulEvictionTask) { t.PurgeMode = policyv1alpha1.PurgeModeNever }
	drains := func(t *workv1alpha2.GracefulEvictionTask) { t.Producer = workv1alpha2.EvictionProducerDrain }
	noGrace := func(t *workv1alpha2.GracefulEvictionTask) { t.GracePeriodSeconds = nil }
	noTime := func(t *workv1alpha2.GracefulEvictionTask) { t.CreationTimestamp = nil }
	const dead, partly, well = "Unhealthy 0", "Unhealthy 1", "Healthy 2"
	const waits = "moved off a (x), and kept there until b is healthy"
	cases := map[string]struct {
		task   workv1alpha2.GracefulEvictionTask
		runs   string // where it is placed
		in     map[string]string
		silent string
		away   string // of those
		late   bool   // the time is over
		want   string
	}{
		"it serves there":                        {task: task(), runs: "b", in: map[string]string{"a": well}, want: waits},
		"it serves there in part":                {task: task(), runs: "b", in: map[string]string{"a": partly}, want: waits},
		"it serves nobody":                       {task: task(), runs: "b", in: map[string]string{"a": dead}, want: waits + ", or until 06:21:04 UTC"},
		"the same, and nothing is heard of it":   {task: task(), runs: "b", in: map[string]string{"a": dead}, silent: "a", want: waits},
		"the same, and its time is over":         {task: task(), runs: "b", in: map[string]string{"a": dead}, late: true, want: waits},
		"the same, and it is drained":            {task: task(drains), runs: "b", in: map[string]string{"a": dead}, want: waits},
		"the same, and nobody said how long":     {task: task(noGrace), runs: "b", in: map[string]string{"a": dead}, want: waits},
		"the same, and nobody said since when":   {task: task(noTime), runs: "b", in: map[string]string{"a": dead}, want: waits},
		"nothing was said of it":                 {task: task(), runs: "b", want: waits},
		"one of two targets does well":           {task: task(), runs: "b c", in: map[string]string{"a": well, "c": well}, want: "moved off a (x), and kept there until b, c are healthy, or until 06:21:04 UTC"},
		"the same, and nothing is heard of that": {task: task(), runs: "b c", in: map[string]string{"a": well, "c": well}, silent: "c", want: "moved off a (x), and kept there until b, c are healthy"},
		"it is away":                             {task: task(), runs: "b", in: map[string]string{"b": well}, away: "a", want: "moved off a (x), and kept there until a is back and b is healthy"},
		"the same, and it goes to several":       {task: task(), runs: "b c", away: "a", want: "moved off a (x), and kept there until a is back and b, c are healthy"},
		"the same, and another cluster is away":  {task: task(), runs: "b", away: "b", want: waits},
		"the same, and it is placed there":       {task: task(), runs: "a", away: "a", want: "to be moved off a (x), and cannot be: it stays there until another cluster fits"},
		"the same, and somebody has it kept":     {task: task(never), runs: "b", away: "a", want: "moved off a (x), and kept there until its eviction task says suppressDeletion: false"},
		"it is wanted to be kept":                {task: task(never), runs: "b", in: map[string]string{"a": dead}, want: "moved off a (x), and kept there until its eviction task says suppressDeletion: false"},
		"it is placed there":                     {task: task(), runs: "a", in: map[string]string{"a": dead}, want: "to be moved off a (x), and cannot be: it stays there until another cluster fits"},
		"the same, and it is wanted to be kept":  {task: task(never), runs: "a", want: "to be moved off a (x), and cannot be: it stays there until another cluster fits"},
		"it is placed nowhere":                   {task: task(), in: map[string]string{"a": dead}, want: "moved off a (x), and kept there until another cluster fits"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Clusters: targets(tc.runs), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tc.task}}}
			for _, cluster := range slices.Sorted(maps.Keys(tc.in)) {
				health, ready, _ := strings.Cut(tc.in[cluster], " ")
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
					ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealth(health), Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2,"readyReplicas":` + ready + `}`)},
				})
			}
			now := since.Add(time.Minute)
			if tc.late {
				now = since.Add(time.Hour)
			}
			kept := eviction.KeptBy(&b.Spec)
			if len(kept) != 1 {
				t.Fatalf("%v", kept)
			}
			got := kept[0].While(func(cluster string) bool { return cluster == tc.away }).Timed(b, now, func(cluster string) bool { return cluster == tc.silent }).String()
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// targets returns the clusters of a list such as "a b".
func targets(list string) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for _, name := range strings.Fields(list) {
		out = append(out, workv1alpha2.TargetCluster{Name: name})
	}
	return out
}

// TestKeptBeside: a Service waits for what runs beside it, and says so; a Deployment, and what is of no namespace, does not.
func TestKeptBeside(t *testing.T) {
	task := workv1alpha2.GracefulEvictionTask{FromCluster: "west", Reason: "TaintUntolerated", Producer: "drain", PurgeMode: policyv1alpha1.PurgeModeGracefully}
	asked := task
	asked.SuppressDeletion = ptr.To(true)
	service := workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		of   workv1alpha2.ObjectReference
		task workv1alpha2.GracefulEvictionTask
		away bool
		want string
	}{
		"a Service":                     {service, task, false, "until north is healthy and what runs beside it has left"},
		"one in a cluster that is away": {service, task, true, "until west is back and north is healthy and what runs beside it has left"},
		"one that is to be kept":        {service, asked, false, "until its eviction task says suppressDeletion: false"},
		"a Deployment":                  {workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, task, false, "until north is healthy"},
		"a ClusterRole":                 {workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web"}, task, false, "until north is healthy"},
	} {
		spec := &workv1alpha2.ResourceBindingSpec{Resource: tc.of, Clusters: targets("north"), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{tc.task}}
		kept := eviction.KeptBy(spec)
		if len(kept) != 1 {
			t.Fatalf("%s: %+v", name, kept)
		}
		if got := kept[0].While(func(string) bool { return tc.away }).Condition(); got != tc.want {
			t.Errorf("%s is kept %q, want %q", name, got, tc.want)
		}
	}
}
