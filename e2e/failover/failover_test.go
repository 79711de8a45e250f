package failover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// quickly is failover, with patience for seconds.
var quickly = []string{
	"--failover=on", "--failover-tolerance=1s", "--cluster-status-update-frequency=1s", "--cluster-failure-threshold=2s", "--cluster-success-threshold=2s",
	"--cluster-monitor-grace-period=5s",
}

// skew is how far apart it may be noticed that clusters are lost at once, with those flags: nothing is moved before.
const skew = 11 * time.Second

// web runs in one cluster of all, and only in the first it is reported as running only there.
const web = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [%[2]s]}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

// world is the fleet of one test.
type world struct {
	*testing.T
	*fleet.Fleet
}

func newWorld(t *testing.T, hubArgs ...string) world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	return world{t, fleet.Own(t, fleet.Options{Dir: fleet.Folder(t), Members: []string{"east", "north", "west"}, HubArgs: slices.Concat(quickly, hubArgs)})}
}

func (w world) eventually(what string, check func(ctx context.Context) error) {
	w.Helper()
	w.Eventually(w.T, 2*time.Minute, what, check)
}

// freeze stops a member until the function that it returns is called.
func (w world) freeze(name string) (resume func()) {
	w.Helper()
	if err := w.Members[name].Pause(); err != nil {
		w.Fatal(err)
	}
	resume = sync.OnceFunc(func() {
		if err := w.Members[name].Resume(); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(resume)
	return resume
}

// placed returns where the Deployment of a namespace is to run, and the tasks of where it is to go from.
func (w world) placed(ctx context.Context, namespace string) (string, []workv1alpha2.GracefulEvictionTask, error) {
	b := &workv1alpha2.ResourceBinding{}
	err := w.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: workv1alpha2.BindingName("Deployment", "web")}, b)
	if err != nil || len(b.Spec.Clusters) != 1 {
		return "", nil, errors.Join(err, fmt.Errorf("placed in %v", b.Spec.Clusters))
	}
	return b.Spec.Clusters[0].Name, b.Spec.GracefulEvictionTasks, nil
}

// runs returns the UID of the Deployment in a member once it has all its replicas.
func (w world) runs(ctx context.Context, cluster, namespace string) (types.UID, error) {
	d := &appsv1.Deployment{}
	if err := w.Clients[cluster].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, d); err != nil {
		return "", err
	}
	if d.Status.AvailableReplicas != 2 {
		return "", fmt.Errorf("%d of 2 replicas in %s", d.Status.AvailableReplicas, cluster)
	}
	return d.UID, nil
}

// start has the Deployment run in one of the clusters, and returns which.
func (w world) start(namespace string, clusters ...string) string {
	w.Helper()
	w.Apply(w.T, fmt.Sprintf(web, namespace, strings.Join(clusters, ", ")))
	var at string
	w.eventually("it runs", func(ctx context.Context) (err error) {
		if at, _, err = w.placed(ctx, namespace); err == nil {
			_, err = w.runs(ctx, at, namespace)
		}
		return err
	})
	return at
}

// suspected are the clusters that are not believed to be lost.
func (w world) suspected(ctx context.Context) ([]string, error) {
	var list clusterv1alpha1.ClusterList
	var out []string
	err := w.Client.List(ctx, &list)
	for i := range list.Items {
		if apimeta.IsStatusConditionTrue(list.Items[i].Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected) {
			out = append(out, list.Items[i].Name)
		}
	}
	return out, err
}

// TestAClusterIsLost: what ran there runs elsewhere, and stays there; the old copy goes once, when the cluster is back.
func TestAClusterIsLost(t *testing.T) {
	w := newWorld(t)
	at := w.start("shop", "east", "north", "west")
	only := w.start("tied", at)
	if only != at {
		t.Fatalf("it runs in %s", only)
	}
	resume := w.freeze(at)
	var next string
	var uid types.UID
	w.eventually("it runs elsewhere", func(ctx context.Context) (err error) {
		if next, _, err = w.placed(ctx, "shop"); err == nil && next == at {
			err = errors.New("not moved yet")
		}
		if err == nil {
			uid, err = w.runs(ctx, next, "shop")
		}
		return err
	})
	w.eventually("status says what becomes of the old copy", func(context.Context) error {
		text := w.Flotilla(t, "status")
		if !strings.Contains(text, "it was moved off "+at) || !strings.Contains(text, "Its old copy goes once "+at+" is back") {
			return errors.New(text)
		}
		return nil
	})
	w.eventually("what has no other place says so", func(ctx context.Context) error {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.Client.Get(ctx, types.NamespacedName{Namespace: "tied", Name: workv1alpha2.BindingName("Deployment", "web")}, b); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Evictable); c == nil || c.Reason != workv1alpha2.NoReplacementReason || len(b.Spec.Clusters) != 1 {
			return fmt.Errorf("%v, %+v", b.Spec.Clusters, c)
		}
		return nil
	})

	resume()
	w.eventually("the old copy is gone", func(ctx context.Context) error {
		if now, err := w.runs(ctx, next, "shop"); err != nil || now != uid {
			t.Fatalf("the new copy: %s, was %s: %v", now, uid, err)
		}
		err := w.Clients[at].Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, &appsv1.Deployment{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	w.eventually("the cluster has no taint any more", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		err := w.Client.Get(ctx, types.NamespacedName{Name: at}, c)
		if len(c.Spec.Taints) > 0 {
			err = errors.Join(err, fmt.Errorf("%v", c.Spec.Taints))
		}
		return err
	})
	if now, tasks, err := w.placed(t.Context(), "shop"); err != nil || now != next || len(tasks) > 0 {
		t.Errorf("it went back by itself: %s, %+v, %v", now, tasks, err)
	}
	if _, err := w.runs(t.Context(), at, "tied"); err != nil {
		t.Errorf("what has no other place: %v", err)
	}
	evicted := ""
	w.eventually("it is told on both", func(ctx context.Context) error {
		events, err := w.TryKubectl(t, "", "get", "events", "-n", "shop", "--field-selector=reason=EvictWorkloadFromClusterSucceed", "-o", "custom-columns=:involvedObject.kind", "--no-headers")
		kinds := strings.Fields(events)
		slices.Sort(kinds)
		if evicted = strings.Join(kinds, " "); err == nil && len(kinds) < 2 {
			err = fmt.Errorf("on %q", evicted)
		}
		return err
	})
	if evicted != "Deployment ResourceBinding" {
		t.Errorf("it is told on %s", evicted)
	}
}

// TestTheOnlyClusterThatAnswersKeepsItsCopy: what was moved off a cluster goes from there once it is back, and not before what
// took its place is heard of.
func TestTheOnlyClusterThatAnswersKeepsItsCopy(t *testing.T) {
	w := newWorld(t)
	at := w.start("shop", "east", "north", "west")
	before, err := w.runs(t.Context(), at, "shop")
	if err != nil {
		t.Fatal(err)
	}
	back := w.freeze(at)
	var next string
	w.eventually("it runs elsewhere", func(ctx context.Context) (err error) {
		if next, _, err = w.placed(ctx, "shop"); err == nil && next == at {
			err = errors.New("not moved yet")
		}
		if err == nil {
			_, err = w.runs(ctx, next, "shop")
		}
		return err
	})
	w.eventually("that is known", func(context.Context) error {
		if text := w.Flotilla(t, "status"); !strings.Contains(text, "Its old copy goes once "+at+" is back") {
			return errors.New(text)
		}
		return nil
	})
	nextIsBack := w.freeze(next)
	w.ready(next, metav1.ConditionFalse)
	back()
	w.ready(at, metav1.ConditionTrue)
	if now, err := w.runs(t.Context(), at, "shop"); err != nil || now != before {
		t.Fatalf("the only copy that is heard of: %s, was %s: %v", now, before, err)
	}
	if now, tasks, err := w.placed(t.Context(), "shop"); err != nil || now != next || len(tasks) != 1 {
		t.Errorf("placed in %s, leaves %+v: %v", now, tasks, err)
	}
	nextIsBack()
	w.eventually("the old copy is gone", func(ctx context.Context) error {
		err := w.Clients[at].Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, &appsv1.Deployment{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	if _, err := w.runs(t.Context(), next, "shop"); err != nil {
		t.Error(err)
	}
}

// ready waits until it is known of a cluster whether it is ready.
func (w world) ready(cluster string, status metav1.ConditionStatus) {
	w.Helper()
	w.eventually(fmt.Sprintf("the readiness of %s is %s", cluster, status), func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		err := w.Client.Get(ctx, types.NamespacedName{Name: cluster}, c)
		if !apimeta.IsStatusConditionPresentAndEqual(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, status) {
			err = errors.Join(err, fmt.Errorf("%+v", c.Status.Conditions))
		}
		return err
	})
}

// tainted waits until the taint that would move what runs in a cluster has been there for longer than is tolerated.
func (w world) tainted(cluster string) {
	w.Helper()
	w.eventually("the taint has been there for longer than is tolerated", func(ctx context.Context) error {
		c := &clusterv1alpha1.Cluster{}
		if err := w.Client.Get(ctx, types.NamespacedName{Name: cluster}, c); err != nil {
			return err
		}
		moves := func(t corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded != nil && time.Since(t.TimeAdded.Time) > skew+2*time.Second
		}
		if !slices.ContainsFunc(c.Spec.Taints, moves) {
			return fmt.Errorf("%v", c.Spec.Taints)
		}
		return nil
	})
}

// TestClustersComeBackOneByOne: those that were lost at once are heard of one after the other, and nothing is moved
// meanwhile, off none of them. They have answered for longer than a taint has to go by the time that this is believed.
func TestClustersComeBackOneByOne(t *testing.T) {
	w := newWorld(t, "--cluster-success-threshold=12s")
	at := w.start("shop", "east", "north", "west")
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(w.Members)), func(name string) bool { return name == at })
	resume := map[string]func(){at: w.freeze(at), others[0]: w.freeze(others[0])}
	w.eventually("both are suspected", func(ctx context.Context) error {
		got, err := w.suspected(ctx)
		if len(got) != 2 {
			err = errors.Join(err, fmt.Errorf("%v", got))
		}
		return err
	})
	w.tainted(at)
	stays := func(when string) {
		t.Helper()
		if now, tasks, err := w.placed(t.Context(), "shop"); err != nil || now != at || len(tasks) > 0 {
			t.Fatalf("%s it is moved: %s, %+v, %v", when, now, tasks, err)
		}
	}
	for _, name := range []string{others[0], at} {
		resume[name]()
		w.eventually(name+" is ready and has no taint", func(ctx context.Context) error {
			stays("as " + name + " comes back")
			c := &clusterv1alpha1.Cluster{}
			err := w.Client.Get(ctx, types.NamespacedName{Name: name}, c)
			if !apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(c.Spec.Taints) > 0 {
				err = errors.Join(err, fmt.Errorf("%v, %+v", c.Spec.Taints, c.Status.Conditions))
			}
			return err
		})
	}
	w.eventually("nothing is suspected any more", func(ctx context.Context) error {
		got, err := w.suspected(ctx)
		if len(got) > 0 {
			err = errors.Join(err, fmt.Errorf("%v", got))
		}
		return err
	})
	stays("when all are back")
}

// TestManyClustersAreLost: nothing is moved off them, which is reported on each, until somebody confirms that one is lost.
func TestManyClustersAreLost(t *testing.T) {
	w := newWorld(t)
	at := w.start("shop", "east", "north", "west")
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(w.Members)), func(name string) bool { return name == at })
	lost := slices.Sorted(slices.Values([]string{at, others[0]}))
	for _, name := range lost {
		w.freeze(name)
	}
	w.eventually("it is said on each", func(ctx context.Context) error {
		got, err := w.suspected(ctx)
		if diff := cmp.Diff(lost, got); diff != "" {
			err = errors.Join(err, errors.New(diff))
		}
		return err
	})
	w.tainted(at)
	if now, tasks, err := w.placed(t.Context(), "shop"); err != nil || now != at || len(tasks) > 0 {
		t.Errorf("it is moved: %s, %+v, %v", now, tasks, err)
	}
	if text := w.Flotilla(t, "status"); !strings.Contains(text, "2 of 3 clusters were lost at once") || !strings.Contains(text, "confirm-lost") {
		t.Errorf("status does not say how to go on:\n%s", text)
	}

	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: at}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.ConfirmLostAnnotation, time.Now().UTC().Format(time.RFC3339)))
	if err := w.Client.Patch(t.Context(), c, patch); err != nil {
		t.Fatal(err)
	}
	w.eventually("it runs in the one that is left", func(ctx context.Context) error {
		now, _, err := w.placed(ctx, "shop")
		if err == nil && now != others[1] {
			err = fmt.Errorf("in %s", now)
		}
		if err == nil {
			_, err = w.runs(ctx, now, "shop")
		}
		return err
	})
}
