package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/examples"
)

// pools says what each cluster has of the example's six workers.
var pools = map[string]int64{"east": 3, "west": 2, "edge": 1}

// kindsFirst applies the definition before what is in it.
const kindsFirst = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: kinds, namespace: %s}
spec: {sourceRef: {kind: GitRepository, name: src}, path: ./kinds, interval: 1m, retryInterval: 1s, prune: true, wait: true}
`

// TestCustomKind runs the example of a kind that nobody knows: a definition, its
// scripts and an object of it in one commit. A script that breaks in a later one
// is reported, and breaks nothing else.
func TestCustomKind(t *testing.T) {
	repo := the.repository(t)
	files, err := fs.Sub(examples.Files, "custom-kind")
	if err != nil {
		t.Fatal(err)
	}
	repo.copy(files, ".")
	first := repo.push("a kind of our own")
	namespace := the.follow(t, repo.url, "", "dependsOn: [{name: kinds}]")
	the.Apply(t, fmt.Sprintf(kindsFirst, namespace))

	pool := object("batch.example.io/v1", "WorkerPool", "batch", "thumbnails")
	eventually(t, 90*time.Second, "the workers are divided", the.inEveryMember(
		func(ctx context.Context, name string, member client.Client) error {
			return holds(ctx, member, pool, pools[name], "spec", "workers")
		}))
	eventually(t, 30*time.Second, "what the pool reads went along", the.inEveryMember(
		func(ctx context.Context, _ string, member client.Client) error {
			return member.Get(ctx, types.NamespacedName{Namespace: "batch", Name: "thumbnails"}, &corev1.ConfigMap{})
		}))

	for _, name := range []string{"east", "west"} {
		work(t, name, pool, map[string]any{"readyWorkers": pools[name]})
	}
	says(t, repo, first, "pending")
	work(t, "edge", pool, map[string]any{"readyWorkers": pools["edge"]})
	the.applied(t, namespace, first, time.Minute)
	says(t, repo, first, "success 3/3 clusters ready")
	eventually(t, 30*time.Second, "the template sums its clusters up", func(ctx context.Context) error {
		return holds(ctx, the.hub, pool, int64(6), "status", "readyWorkers")
	})
	observed := get(t, the.hub, pool)
	if generation, _, _ := unstructured.NestedInt64(observed.Object, "status", "observedGeneration"); generation != observed.GetGeneration() {
		t.Errorf("the template's observedGeneration is %d at generation %d", generation, observed.GetGeneration())
	}
	t.Run("the member keeps what is its own", func(t *testing.T) { keepsQueue(t, pool) })
	t.Run("what another script would change", func(t *testing.T) { rehearsed(t, repo) })
	t.Run("a script that breaks", func(t *testing.T) { brokenScript(t, repo, namespace, pool) })
}

// keepsQueue moves a pool to another queue in a member, as its controller would.
func keepsQueue(t *testing.T, pool *unstructured.Unstructured) {
	before := get(t, the.members["west"], pool)
	moved := before.DeepCopy()
	moved.Object["spec"].(map[string]any)["queue"] = "night"
	if err := the.members["west"].Patch(t.Context(), moved, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	work(t, "west", pool, map[string]any{"readyWorkers": pools["west"]})
	eventually(t, 30*time.Second, "the template tells of the queue", func(ctx context.Context) error {
		template, err := find(ctx, the.hub, pool)
		if err != nil {
			return err
		}
		queues, _, _ := unstructured.NestedStringSlice(template.Object, "status", "queues")
		if got := strings.Join(queues, " "); got != "east/default edge/default west/night" {
			return fmt.Errorf("its queues are %q", got)
		}
		return nil
	})
	if queue, _, _ := unstructured.NestedString(get(t, the.members["west"], pool).Object, "spec", "queue"); queue != "night" {
		t.Errorf("the pool in west is in queue %q, want night", queue)
	}
}

// rehearsed asks what a script would change before it is committed.
func rehearsed(t *testing.T, repo *repository) {
	text := repo.read("kinds/customization.yaml")
	fewer := strings.Replace(text, "obj.spec.workers = workers", "obj.spec.workers = workers - 1", 1)
	if fewer == text {
		t.Fatal("the script is not the one that is to be changed")
	}
	out, err := run(t.Context(), []byte(fewer), "flotilla", "interpret", "--kubeconfig", the.Hub.Kubeconfig, "--diff", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	for name, workers := range pools {
		who := "ReviseReplica of WorkerPool batch/thumbnails in " + name + ": customization workerpools, before customization workerpools\n"
		_, diff, found := strings.Cut(out, who)
		if change := fmt.Sprintf("-  workers: %d\n+  workers: %d\n", workers, workers-1); !found || !strings.Contains(diff, change) {
			t.Errorf("%s would get a worker less, and nothing says so:\n%s", name, out)
		}
	}
	if !strings.Contains(out, "1 object looked at: 3 answers would change") {
		t.Errorf("it says:\n%s", out)
	}
}

// brokenScript commits a script that fails, and one that mends it.
func brokenScript(t *testing.T, repo *repository, namespace string, pool *unstructured.Unstructured) {
	before := map[string]types.UID{}
	for name, member := range the.members {
		before[name] = get(t, member, pool).GetUID()
	}
	text := repo.read("kinds/customization.yaml")
	broken := strings.Replace(text, "local status = observed.status\n", "local status = observed.stauts.deep\n", 1)
	if broken == text {
		t.Fatal("the script is not the one that is to be broken")
	}
	repo.write("kinds/customization.yaml", broken)
	second := repo.push("a slip of the finger")
	interpreted := func(ctx context.Context) (*metav1.Condition, error) {
		var b workv1alpha2.ResourceBinding
		err := the.hub.Get(ctx, types.NamespacedName{Namespace: "batch", Name: "thumbnails-workerpool"}, &b)
		return apimeta.FindStatusCondition(b.Status.Conditions, "Interpreted"), err
	}
	eventually(t, 30*time.Second, "the binding says what is wrong", func(ctx context.Context) error {
		condition, err := interpreted(ctx)
		if err != nil {
			return err
		}
		if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != "InterpreterFailed" || !strings.Contains(condition.Message, "east") {
			return fmt.Errorf("Interpreted is %+v", condition)
		}
		return nil
	})
	for name, member := range the.members {
		if now := get(t, member, pool); now.GetUID() != before[name] {
			t.Errorf("the pool in %s is not the one that it was", name)
		}
	}
	says(t, repo, second, "pending") // as nobody knows how the pools are; a commit that is superseded before that says nothing of them

	third := repo.revert()
	the.applied(t, namespace, third, time.Minute)
	says(t, repo, third, "success 3/3 clusters ready")
	eventually(t, 30*time.Second, "the binding says nothing any more", func(ctx context.Context) error {
		condition, err := interpreted(ctx)
		if err == nil && condition != nil && condition.Status == metav1.ConditionFalse {
			err = fmt.Errorf("Interpreted is %+v", condition)
		}
		return err
	})
}

// shown is what a commit says of the pools, beside their kind.
func shown(repo *repository, commit string) string {
	for line := range strings.Lines(repo.note(commit)) {
		if rest, found := strings.CutPrefix(line, "kustomization/app/"); found {
			_, state, _ := strings.Cut(rest, ": ")
			return strings.TrimSpace(state)
		}
	}
	return ""
}

// says waits until that begins so.
func says(t *testing.T, repo *repository, commit, want string) {
	t.Helper()
	eventually(t, time.Minute, "the commit "+commit[:8]+" says "+want, func(context.Context) error {
		if shown := shown(repo, commit); !strings.HasPrefix(shown, want) {
			return fmt.Errorf("it says %q", shown)
		}
		return nil
	})
}

// object names an object of any kind.
func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	out.SetNamespace(namespace)
	out.SetName(name)
	return out
}

// find returns an object as it is.
func find(ctx context.Context, from client.Client, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	err := from.Get(ctx, client.ObjectKeyFromObject(obj), out)
	return out, err
}

// get returns an object that must be there.
func get(t *testing.T, from client.Client, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := find(t.Context(), from, obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// holds errs unless a field of an object has the value.
func holds(ctx context.Context, from client.Client, obj *unstructured.Unstructured, want any, path ...string) error {
	found, err := find(ctx, from, obj)
	if err != nil {
		return err
	}
	got, _, err := unstructured.NestedFieldNoCopy(found.Object, path...)
	if err == nil && got != want {
		err = fmt.Errorf("%s of %s is %v, want %v", strings.Join(path, "."), obj.GetName(), got, want)
	}
	return err
}

// work does what the kind's controller would in a member: it has seen the spec,
// and says how far it got.
func work(t *testing.T, cluster string, obj *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	member := the.members[cluster]
	before := get(t, member, obj)
	after := before.DeepCopy()
	status["observedGeneration"] = before.GetGeneration()
	after.Object["status"] = status
	if err := member.Status().Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
