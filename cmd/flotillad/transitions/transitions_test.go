package transitions

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const unreachable = "untolerated taint {cluster.karmada.io/unreachable:NoExecute}"

// clusterIn returns a cluster whose condition Ready has a status since some time ago; an empty status
// is no condition.
func clusterIn(name string, mode clusterv1alpha1.ClusterSyncMode, status metav1.ConditionStatus, ago time.Duration) *clusterv1alpha1.Cluster {
	out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	if status != "" {
		out.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: "ClusterReady", LastTransitionTime: metav1.NewTime(time.Now().Add(-ago))}}
	}
	return out
}

// placedIn returns a binding with its clusters, and with tasks.
func placedIn(name string, tasks []workv1alpha2.GracefulEvictionTask, clusters ...string) *workv1alpha2.ResourceBinding {
	out := &workv1alpha2.ResourceBinding{}
	out.Spec.Resource = workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: name}
	for _, c := range clusters {
		out.Spec.Clusters = append(out.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 1})
	}
	out.Spec.GracefulEvictionTasks = tasks
	return out
}

func taskOf(producer, cluster, message string) []workv1alpha2.GracefulEvictionTask {
	return []workv1alpha2.GracefulEvictionTask{{FromCluster: cluster, Producer: producer, Reason: "TaintUntolerated", Message: message}}
}

// TestMoves: templates that are moved off a cluster for the same reason are one line. For a lost
// cluster the reason is how long it has not been ready, instead of its taint.
func TestMoves(t *testing.T) {
	// move is a template that leaves west for others.
	move := func(w *watcher, name, producer, why string, to ...string) {
		w.binding(placedIn(name, nil, "west"), placedIn(name, taskOf(producer, "west", why), to...))
	}
	lost := func(w *watcher) {
		w.cluster(nil, clusterIn("west", clusterv1alpha1.Push, metav1.ConditionFalse, 30*time.Second))
	}
	const taints, drain = workv1alpha2.EvictionProducerTaintManager, workv1alpha2.EvictionProducerDrain
	cases := map[string]struct {
		happens func(w *watcher)
		want    []string
	}{
		"twelve leave a cluster that is lost": {
			happens: func(w *watcher) {
				lost(w)
				for i := range 12 {
					move(w, fmt.Sprint("web-", i), taints, unreachable, []string{"east", "north"}[i%2])
				}
			},
			want: []string{"3s failover: 12 templates moved off west to east, north: not ready for 30s"},
		},
		"one is named": {
			happens: func(w *watcher) { lost(w); move(w, "web", taints, unreachable, "east") },
			want:    []string{"3s failover: Deployment shop/web moved off west to east: not ready for 30s"},
		},
		"a taint of somebody is named, also of a cluster that is lost": {
			happens: func(w *watcher) { lost(w); move(w, "web", taints, "untolerated taint {a:NoExecute}", "east") },
			want:    []string{"3s failover: Deployment shop/web moved off west to east: untolerated taint {a:NoExecute}"},
		},
		"a cluster that is ready has only its taint": {
			happens: func(w *watcher) { move(w, "web", taints, unreachable, "east") },
			want:    []string{"3s failover: Deployment shop/web moved off west to east: " + unreachable},
		},
		"one that runs elsewhere already only leaves": {
			happens: func(w *watcher) {
				w.binding(placedIn("web", nil, "east", "west"), placedIn("web", taskOf(taints, "west", "untolerated taint {a:NoExecute}"), "east"))
			},
			want: []string{"3s failover: Deployment shop/web removed from west: untolerated taint {a:NoExecute}"},
		},
		"causes and clusters have lines of their own": {
			happens: func(w *watcher) {
				move(w, "a", drain, "untolerated taint {cluster.flotilla.io/drain:NoExecute}", "east")
				time.Sleep(time.Second)
				move(w, "b", workv1alpha2.EvictionProducerApplicationFailover, "an application that was unhealthy for more than 2m0s", "east")
				time.Sleep(time.Second)
				move(w, "c", "mine", "", "east")
			},
			want: []string{
				"3s drain: Deployment shop/a moved off west to east: untolerated taint {cluster.flotilla.io/drain:NoExecute}",
				"4s application failover: Deployment shop/b moved off west to east: an application that was unhealthy for more than 2m0s",
				"5s mine: Deployment shop/c moved off west to east: TaintUntolerated",
			},
		},
		"moves that go on are reported every half minute": {
			happens: func(w *watcher) {
				lost(w)
				for i := range 20 {
					move(w, fmt.Sprint("web-", i), taints, unreachable, "east")
					time.Sleep(2200 * time.Millisecond)
				}
			},
			want: []string{
				"30s failover: 14 templates moved off west to east: not ready for 30s",
				"44.8s failover: 6 templates moved off west to east: not ready for 1m1s",
			},
		},
		"more than three clusters are counted": {
			happens: func(w *watcher) { move(w, "web", taints, "untolerated taint {a:NoExecute}", "a", "b", "c", "d", "e") },
			want:    []string{"3s failover: Deployment shop/web moved off west to a, b, c and 2 more: untolerated taint {a:NoExecute}"},
		},
		"what was on its way already, or follows a policy, is no news": {
			happens: func(w *watcher) {
				tasks := taskOf(taints, "west", unreachable)
				w.binding(placedIn("web", tasks, "east"), placedIn("web", tasks, "east", "north"))
				move(w, "other", workv1alpha2.EvictionProducerScheduler, "it is placed elsewhere", "east")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []string
				w := newWatcher(nil, Options{Screen: func(at time.Time, line string) { got = append(got, fmt.Sprint(at.Sub(began), " ", line)) }})
				tc.happens(w)
				time.Sleep(2 * longest)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("the screen (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTheLog: the log has the lines of the screen, with their values, and clusters in pull mode that become
// ready, or say that they no longer are, which their agents write. Other changes of conditions are logged by
// the loop that makes them.
func TestTheLog(t *testing.T) {
	const push, pull = clusterv1alpha1.Push, clusterv1alpha1.Pull
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	const turned = `"level"=0 "msg"="Cluster turned" "name"="north" "ready"="True" "reason"="ClusterReady"`
	cases := map[string]struct {
		happens func(w *watcher)
		want    []string
	}{
		"is back":        {func(w *watcher) { w.cluster(clusterIn("north", pull, unknown, 0), clusterIn("north", pull, yes, 0)) }, []string{turned}},
		"is there first": {func(w *watcher) { w.cluster(clusterIn("north", pull, "", 0), clusterIn("north", pull, yes, 0)) }, []string{turned}},
		"stays ready":    {func(w *watcher) { w.cluster(clusterIn("north", pull, yes, 0), clusterIn("north", pull, yes, 0)) }, nil},
		"is lost, says its agent": {
			func(w *watcher) { w.cluster(clusterIn("north", pull, yes, 0), clusterIn("north", pull, no, 0)) },
			[]string{strings.Replace(turned, `"True"`, `"False"`, 1)},
		},
		"stays lost":      {func(w *watcher) { w.cluster(clusterIn("north", pull, no, 0), clusterIn("north", pull, no, 0)) }, nil},
		"is silent":       {func(w *watcher) { w.cluster(clusterIn("north", pull, yes, 0), clusterIn("north", pull, unknown, 0)) }, nil},
		"was ready":       {func(w *watcher) { w.cluster(nil, clusterIn("north", pull, yes, 0)) }, nil},
		"is in push mode": {func(w *watcher) { w.cluster(clusterIn("east", push, unknown, 0), clusterIn("east", push, yes, 0)) }, nil},
		"what is moved as the program ends": {
			func(w *watcher) {
				w.binding(placedIn("web", nil, "west"), placedIn("web", taskOf("TaintManager", "west", unreachable), "east"))
				w.stop()
			},
			[]string{`"level"=0 "msg"="Moved off a cluster" "by"="failover" "cluster"="west" "to"=["east"] "templates"=1 "why"="` + unreachable + `"`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			log := funcr.New(func(prefix, args string) { got = append(got, strings.TrimSpace(prefix+args)) }, funcr.Options{})
			tc.happens(newWatcher(nil, Options{Log: log}))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the log (-want +got):\n%s", diff)
			}
		})
	}
}
