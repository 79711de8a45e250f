package profiles

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
)

var start = time.Unix(100_000, 0)

// cluster is one in pull mode that has been ready, or not, since an hour before the start.
func cluster(name string, ready metav1.ConditionStatus, since time.Time, edits ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// nodesOf is the text of so many nodes with so much.
func nodesOf(count int, cpu string, edits ...func(*nodes.Index)) string {
	x := &nodes.Index{}
	for i := range count {
		name := fmt.Sprint("n", i)
		x.Node(name, &nodes.Node{Name: name, Allocatable: nodes.AmountsOf(corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10")})})
	}
	for _, edit := range edits {
		edit(x)
	}
	return string(profile.Of(x).Encode())
}

func reported(namespace, name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"profile": text}}
}

func needs(cpu string) *workv1alpha2.ReplicaRequirements {
	return &workv1alpha2.ReplicaRequirements{Namespace: "shop", ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}
}

// ask returns how many replicas of a cpu fit in a cluster and how old that is, or why that is not known.
func ask(ctx context.Context, p *Profiles, cluster string) string {
	n, err := p.MaxReplicas(ctx, cluster, needs("1"), nil)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(n, " ", p.Age(ctx, cluster))
}

func hubOf(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
}

// TestAnswers has clusters in every state report three nodes of two cores.
func TestAnswers(t *testing.T) {
	long, ready := start.Add(-time.Hour), metav1.ConditionTrue
	cases := map[string]struct {
		cluster  *clusterv1alpha1.Cluster
		reported *corev1.ConfigMap
		want     string
	}{
		"it is ready":               {cluster("a", ready, long), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "6 0s"},
		"it is silent for a while":  {cluster("a", metav1.ConditionUnknown, start.Add(-90*time.Second)), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "6 1m30s"},
		"it is silent since now":    {cluster("a", metav1.ConditionUnknown, start), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "6 1s"},
		"it is silent for long":     {cluster("a", metav1.ConditionFalse, long), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "what cluster a tells of its nodes is too old: it has not been ready for 1h0m0s"},
		"it was never ready":        {cluster("a", ready, long, func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "cluster a has told nothing of its nodes that counts: it has not reported yet"},
		"it is in push mode":        {cluster("a", ready, long, func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), "cluster a has told nothing of its nodes that counts: it is not in pull mode"},
		"it is gone":                {cluster("b", ready, long), reported("karmada-es-a", "node-profile", nodesOf(3, "2")), `cluster a has told nothing of its nodes that counts: clusters.cluster.karmada.io "a" not found`},
		"it has told nothing":       {cluster("a", ready, long), reported("karmada-es-b", "node-profile", nodesOf(3, "2")), "cluster a has told nothing of its nodes"},
		"somebody else tells of it": {cluster("a", ready, long), reported("shop", "node-profile", nodesOf(3, "2")), "cluster a has told nothing of its nodes"},
		"it tells of other things":  {cluster("a", ready, long), reported("karmada-es-a", "other", nodesOf(3, "2")), "cluster a has told nothing of its nodes"},
		"it tells nonsense":         {cluster("a", ready, long), reported("karmada-es-a", "node-profile", "x"), "what cluster a tells of its nodes cannot be read: it is not a profile of nodes: invalid character 'x' looking for beginning of value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := New(hubOf(tc.cluster), Options{Plugins: []nodes.Plugin{nodes.Resources{}}, Clock: clocktesting.NewFakePassiveClock(start)})
			p.observe(tc.reported)
			p.read(t.Context())
			if got := ask(t.Context(), p, "a"); got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}

// TestPluginsCount asks for sets, by quotas, and for what is not reported.
func TestPluginsCount(t *testing.T) {
	p := New(hubOf(cluster("a", metav1.ConditionTrue, start)), Options{Plugins: []nodes.Plugin{nodes.Resources{}, nodes.Quotas{}}})
	p.observe(reported("karmada-es-a", "node-profile", nodesOf(3, "4", func(x *nodes.Index) {
		x.Quota("shop", "q", &nodes.Quota{Free: nodes.AmountsOf(corev1.ResourceList{"cpu": resource.MustParse("7")})})
	})))
	p.read(t.Context())
	sets := func(namespace string) int32 {
		need := &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("2")}}
		n, err := p.MaxSets(t.Context(), "a", namespace, []workv1alpha2.Component{{Replicas: 2, ReplicaRequirements: need}}, nil)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if got := [2]int32{sets("shop"), sets("other")}; got != [2]int32{1, 3} {
		t.Errorf("%v sets fit, with a quota and without, want 1 and 3", got)
	}
	pinned := needs("1")
	pinned.NodeClaim = &workv1alpha2.NodeClaim{NodeSelector: map[string]string{corev1.LabelHostname: "n0"}}
	pinned.Namespace = "other"
	x := nodesOf(1, "1", func(x *nodes.Index) {
		x.Node("n9", &nodes.Node{Name: "n9", Labels: map[string]string{corev1.LabelHostname: "n9"}, Allocatable: nodes.AmountsOf(corev1.ResourceList{"pods": resource.MustParse("1")})})
	})
	p.observe(reported("karmada-es-a", "node-profile", x))
	p.read(t.Context())
	if _, err := p.MaxReplicas(t.Context(), "a", pinned, nil); err == nil || !strings.Contains(err.Error(), "the label kubernetes.io/hostname") {
		t.Errorf("for one node = %v", err)
	}
}

// waits is what a cluster reports nodes, and of replicas of shop/web that wait since a time.
func waits(cluster string, since time.Time, replicas int) *corev1.ConfigMap {
	is := reported("karmada-es-"+cluster, "node-profile", nodesOf(1, "1"))
	is.Data["waiting"] = fmt.Sprintf(`{"version":1,"workloads":[{"group":"apps","kind":"Deployment","namespace":"shop","name":"web","rows":[[%d,%d]]}]}`, since.Unix(), replicas)
	return is
}

// web is the workload that waits.
var web = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}

// TestWhatWaits has clusters in every state report that three replicas wait since an hour.
func TestWhatWaits(t *testing.T) {
	long, ready := start.Add(-time.Hour), metav1.ConditionTrue
	saying := func(text string) *corev1.ConfigMap {
		is := waits("a", long, 3)
		is.Data["waiting"] = text
		return is
	}
	cases := map[string]struct {
		cluster  *clusterv1alpha1.Cluster
		reported *corev1.ConfigMap
		placed   time.Time // zero: long ago
		want     string
	}{
		"they wait":                        {cluster: cluster("a", ready, long), reported: waits("a", long, 3), want: "3"},
		"not for long enough":              {cluster: cluster("a", ready, long), reported: waits("a", start.Add(-299*time.Second), 3), want: "0"},
		"others do":                        {cluster: cluster("a", ready, long), reported: saying(`{"version":1}`), want: "0"},
		"by a clock that is ahead":         {cluster: cluster("a", ready, long), reported: waits("a", start.Add(time.Hour), 3), want: "0"},
		"its agent tells of nodes alone":   {cluster: cluster("a", ready, long), reported: reported("karmada-es-a", "node-profile", nodesOf(1, "1")), want: "cluster a has not told what waits there"},
		"it has told nothing":              {cluster: cluster("a", ready, long), reported: waits("b", long, 3), want: "cluster a has not told what waits there"},
		"it is silent":                     {cluster: cluster("a", metav1.ConditionUnknown, start), reported: waits("a", long, 3), want: "cluster a has not told what waits there that counts: it is not ready"},
		"it is in push mode":               {cluster: cluster("a", ready, long, func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }), reported: waits("a", long, 3), want: "cluster a has not told what waits there that counts: it is not in pull mode"},
		"it was decided a moment ago":      {cluster: cluster("a", ready, long), reported: waits("a", long, 3), placed: start.Add(-29 * time.Second), want: "cluster a has not told what waits there that counts: what runs there was decided a moment ago"},
		"it was decided before they came":  {cluster: cluster("a", ready, long), reported: waits("a", long, 3), placed: start.Add(-30 * time.Second), want: "3"},
		"it tells nonsense":                {cluster: cluster("a", ready, long), reported: saying("x"), want: "what cluster a tells of what waits there cannot be read: it is not a list of what waits: invalid character 'x' looking for beginning of value"},
		"it tells of some, and not of web": {cluster: cluster("a", ready, long), reported: saying(`{"version":1,"leftOut":1}`), want: "count what waits in cluster a: more waits in the cluster than it tells of"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := New(hubOf(tc.cluster), Options{Plugins: []nodes.Plugin{nodes.Resources{}}, Clock: clocktesting.NewFakePassiveClock(start)})
			p.observe(tc.reported)
			p.read(t.Context())
			n, err := p.Unschedulable(t.Context(), "a", web, 5*time.Minute, tc.placed)
			got := fmt.Sprint(n)
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("= %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatIsNewIsPassedOn has a cluster report more that waits, less, and the same.
func TestWhatIsNewIsPassedOn(t *testing.T) {
	var got []string
	clock := clocktesting.NewFakePassiveClock(start)
	p := New(hubOf(cluster("a", metav1.ConditionTrue, start)), Options{Clock: clock, Waits: func(reported *waiting.Known) {
		for of, since := range reported.New() {
			got = append(got, fmt.Sprint(of.Kind, " ", of.Namespace, "/", of.Name, " ", since.Sub(start)))
		}
	}})
	publish := func(is *corev1.ConfigMap) {
		p.limiters = map[string]*rate.Limiter{}
		p.observe(is)
		p.read(t.Context())
	}
	publish(waits("a", start, 3))
	publish(waits("a", start, 3))
	publish(waits("a", start, 2))
	publish(waits("a", start, 3))
	publish(waits("a", start.Add(time.Hour), 3)) // ahead: since now
	clock.SetTime(start.Add(time.Minute))
	publish(waits("a", start.Add(time.Hour), 3))
	n, err := p.Unschedulable(t.Context(), "a", web, time.Minute, time.Time{})
	got = append(got, fmt.Sprint(n, " ", err))
	want := []string{"Deployment shop/web 0s", "Deployment shop/web 0s", "Deployment shop/web 0s", "3 <nil>"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// followed is Profiles that follow what clusters tell, until the test ends.
type followed struct {
	*Profiles
	t    *testing.T
	mu   sync.Mutex // More is called where changes are followed
	more []string
	was  map[string]*corev1.ConfigMap
}

func follow(t *testing.T, clusters ...client.Object) *followed {
	f := &followed{t: t, was: map[string]*corev1.ConfigMap{}}
	f.Profiles = New(hubOf(clusters...), Options{
		Plugins: []nodes.Plugin{nodes.Resources{}}, More: func(cluster string) { f.mu.Lock(); defer f.mu.Unlock(); f.more = append(f.more, cluster) },
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.follow(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return f
}

// publish has a cluster publish a text.
func (f *followed) publish(cluster, text string) {
	is := reported("karmada-es-"+cluster, "node-profile", text)
	if was := f.was[cluster]; was == nil {
		f.changes().OnAdd(is, true)
	} else {
		f.changes().OnUpdate(was, is)
	}
	f.was[cluster] = is
}

// look returns what fits in a cluster, and where more does than when it was called last.
func (f *followed) read(cluster string) string {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	slices.Sort(f.more)
	out := fmt.Sprint(ask(f.t.Context(), f.Profiles, cluster), " ", f.more)
	f.more = nil
	return out
}

// TestChangesAreReported has what is told change faster than it is read.
func TestChangesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, cluster("a", metav1.ConditionTrue, start))
		var got []string
		for _, cpu := range []string{"1", "3", "2", "4", "5"} { // the fourth within a second
			f.publish("a", nodesOf(1, cpu))
			got = append(got, f.read("a"))
		}
		for range 2 {
			time.Sleep(time.Second)
			got = append(got, f.read("a"))
		}
		for _, text := range []string{"x", nodesOf(2, "1")} {
			time.Sleep(time.Second)
			f.publish("a", text)
			got = append(got, f.read("a"))
		}
		time.Sleep(time.Second)
		f.changes().OnDelete(cache.DeletedFinalStateUnknown{Obj: f.was["a"]})
		got = append(got, f.read("a"))
		want := []string{
			"1 0s [a]",
			"3 0s [a]",
			"2 0s []",
			"2 0s []",
			"2 0s []",
			"5 0s [a]",
			"5 0s []",
			"what cluster a tells of its nodes cannot be read: it is not a profile of nodes: invalid character 'x' looking for beginning of value []",
			"2 0s [a]",
			"cluster a has told nothing of its nodes []",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what fits in a, and where more does (-want +got):\n%s", diff)
		}
	})
}

// TestNoClusterWaitsForAnother has one report more than is read of it, and another report a
// change meanwhile.
func TestNoClusterWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, cluster("a", metav1.ConditionTrue, start), cluster("b", metav1.ConditionTrue, start))
		for i := range 10 {
			f.publish("a", nodesOf(1, fmt.Sprint(i+1)))
			f.read("a")
		}
		for i := range 2 {
			f.publish("b", nodesOf(1, fmt.Sprint(i+1)))
			if got, want := f.read("b"), fmt.Sprint(i+1, " 0s [b]"); got != want {
				t.Errorf("what fits in b is %s, want %s", got, want)
			}
		}
		if got := f.read("a"); got != "3 0s []" {
			t.Errorf("what fits in a is %s, although it tells too much", got)
		}
		time.Sleep(time.Second)
		if got := f.read("a"); got != "10 0s [a]" {
			t.Errorf("what fits in a is %s after a second, want the latest", got)
		}
	})
}

// TestSilentClustersCostNothing has clusters come, tell too much, and go.
func TestSilentClustersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t)
		for i := range 100 {
			for range 5 {
				f.publish(fmt.Sprint("c", i), nodesOf(1, "1"))
			}
		}
		time.Sleep(time.Minute)
		f.publish("a", nodesOf(1, "1"))
		f.read("a")
		f.Profiles.mu.Lock()
		defer f.Profiles.mu.Unlock()
		if len(f.limiters) != 1 {
			t.Errorf("the pace of %d clusters is known, want that of the one that tells", len(f.limiters))
		}
	})
}
