package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// work writes a Work by hand, with a ConfigMap for each name that is value.
func (w *world) work(t *testing.T, cluster, name, value string, configMaps ...string) {
	t.Helper()
	spec := workv1alpha1.WorkSpec{}
	for _, name := range configMaps {
		spec.Workload.Manifests = append(spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q},"data":{"value":%q}}`, name, value)}})
	}
	w.Eventually(t, time.Minute, "the Work is written", func(ctx context.Context) error {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}}
		err := w.hub.Get(ctx, client.ObjectKeyFromObject(work), work)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		work.Spec = spec
		if err != nil {
			return w.hub.Create(ctx, work)
		}
		return w.hub.Update(ctx, work)
	})
}

// drop deletes a Work; with force it is gone at once, and its objects are not.
func (w *world) drop(t *testing.T, cluster, name string, force bool) {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}}
	if force {
		if err := w.hub.Patch(t.Context(), work, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.hub.Delete(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

// values is nil once a member has these ConfigMaps; an empty value is none.
func values(member client.Client, want map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		var all []error
		for name, value := range want {
			var cm corev1.ConfigMap
			err := member.Get(ctx, types.NamespacedName{Namespace: "default", Name: name}, &cm)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if got := cm.Data["value"]; got != value {
				all = append(all, fmt.Errorf("%s is %q, want %q", name, got, value))
			}
		}
		return errors.Join(all...)
	}
}

// spoil changes a ConfigMap of a member behind everybody's back, and waits until it is
// what it was.
func spoil(t *testing.T, member client.Client, name, value string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := member.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"spoilt"}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "what was changed in the member is put back", values(member, map[string]string{name: value}))
}

// condition is nil once a condition of the cluster that is True says something; empty
// for one that is not there.
func (w *world) condition(cluster, kind, says string) func(context.Context) error {
	return func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := w.hub.Get(ctx, types.NamespacedName{Name: cluster}, &c); err != nil {
			return err
		}
		is := meta.FindStatusCondition(c.Status.Conditions, kind)
		holds := is != nil && is.Status == metav1.ConditionTrue
		if holds != (says != "") || holds && !strings.Contains(is.Message, says) {
			return fmt.Errorf("%s is %+v", kind, is)
		}
		return nil
	}
}

// status is what flotilla status says, whatever its exit code.
func (w *world) status(t *testing.T) string {
	t.Helper()
	out, _ := run(t.Context(), nil, "flotilla", "status", "--kubeconfig", w.Hub.Kubeconfig)
	return out
}

// TestWorksThroughAnAgent: what a Work by hand does not ask for any more goes from a
// cluster in pull mode, also if its agent is away meanwhile; what no Work names is
// reported, and stays until somebody says otherwise.
func TestWorksThroughAnAgent(t *testing.T) {
	t.Parallel() // it waits for most of its time
	s := the.site(t, fleet.Again(t, "leftovers"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.work(t, s.name, "hand", "1", "kept", "dropped", "later")
	eventually(t, time.Minute, "the member has it", values(s.client, map[string]string{"kept": "1", "dropped": "1", "later": "1"}))

	the.work(t, s.name, "hand", "1", "kept", "later")
	eventually(t, time.Minute, "a manifest that was taken out goes", values(s.client, map[string]string{"kept": "1", "dropped": "", "later": "1"}))
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	the.work(t, s.name, "hand", "1", "kept")
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "one that was taken out while the agent was away goes, too", values(s.client, map[string]string{"kept": "1", "later": ""}))
	the.drop(t, s.name, "hand", false)
	eventually(t, time.Minute, "the rest goes with the Work", values(s.client, map[string]string{"kept": ""}))

	the.work(t, s.name, "lost", "1", "orphan")
	the.work(t, s.name, "other", "1", "other")
	eventually(t, time.Minute, "the member has it", values(s.client, map[string]string{"orphan": "1", "other": "1"}))
	s.link.Cut()
	the.drop(t, s.name, "lost", true)
	s.link.Mend()
	eventually(t, 2*time.Minute, "the cluster tells of an object that no Work names",
		the.condition(s.name, clusterv1alpha1.ClusterConditionOrphansFound, "1 object that no Work names: ConfigMap default/orphan"))
	if out := the.status(t); !strings.Contains(out, "flotilla prune --cluster "+s.name) {
		t.Errorf("status says\n%s", out)
	}
	if err := values(s.client, map[string]string{"orphan": "1", "other": "1"})(t.Context()); err != nil {
		t.Errorf("nobody asked: %v", err)
	}
	the.Flotilla(t, "prune", "--cluster", s.name, "--yes")
	eventually(t, time.Minute, "it goes when somebody says so", values(s.client, map[string]string{"orphan": "", "other": "1"}))
	eventually(t, 2*time.Minute, "the cluster tells of nothing", the.condition(s.name, clusterv1alpha1.ClusterConditionOrphansFound, ""))
	the.drop(t, s.name, "other", false)
	eventually(t, time.Minute, "the rest goes", values(s.client, map[string]string{"other": ""}))
}

// restore brings the store of a control plane that has ended to another folder, or from
// there.
func restore(t *testing.T, from, to string) {
	t.Helper()
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// mark reads how far a member has seen the control plane.
func mark(ctx context.Context, member client.Client) (*hubclaim.Mark, error) {
	var system corev1.Namespace
	if err := member.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		return nil, err
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil || claim == nil || claim.Mark == nil {
		return nil, fmt.Errorf("the claim is %+v, %w", claim, err)
	}
	return claim.Mark, nil
}

// marked waits until the member of a cluster carries that it has seen a Work, by another
// run of the control plane than before, and returns by which.
func (w *world) marked(t *testing.T, cluster string, member client.Client, work, before string) (run string) {
	t.Helper()
	w.Eventually(t, 2*time.Minute, "the member carries that it has seen the Work "+work, func(ctx context.Context) error {
		var seen workv1alpha1.Work
		if err := w.hub.Get(ctx, types.NamespacedName{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: work}, &seen); err != nil {
			return err
		}
		mark, err := mark(ctx, member)
		if err != nil {
			return err
		}
		if revision, err := strconv.ParseInt(seen.ResourceVersion, 10, 64); err != nil || mark.Revision < revision || mark.ID == before {
			return fmt.Errorf("the mark is %+v, the Work at %s", mark, seen.ResourceVersion)
		}
		run = mark.ID
		return nil
	})
	return run
}

// again stops the control plane, has its store changed, and starts it.
func (w *world) again(t *testing.T, meanwhile func()) {
	t.Helper()
	if err := w.Hub.Stop(); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := w.Hub.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), slack*time.Minute)
	defer cancel()
	if err := w.Hub.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestAnAgentOfAHubThatWasSetBack restores an older copy of the store, which only a
// cluster in pull mode has seen more of: it keeps what it has until somebody says to go
// on, and the cluster that is pushed to, of which nothing was lost, goes on.
func TestAnAgentOfAHubThatWasSetBack(t *testing.T) {
	t.Parallel() // it waits for most of its time
	dir := fleet.Folder(t)
	w := of(fleet.Own(t, fleet.Options{Dir: dir, Members: []string{"solo"}}))
	s := w.site(t, "away")
	solo := w.members["solo"]
	w.Eventually(t, time.Minute, "the cluster is ready", w.judged(s.name, metav1.ConditionTrue))
	w.work(t, s.name, "changed", "1", "changed")
	w.work(t, s.name, "removed", "1", "removed")
	w.work(t, "solo", "pushed", "1", "pushed")
	w.Eventually(t, time.Minute, "the members have it", func(ctx context.Context) error {
		return errors.Join(values(s.client, map[string]string{"changed": "1", "removed": "1"})(ctx), values(solo, map[string]string{"pushed": "1"})(ctx))
	})
	w.marked(t, "solo", solo, "pushed", "")
	first := w.marked(t, s.name, s.client, "changed", "")

	store, backup := filepath.Join(dir, "hub", "etcd"), filepath.Join(dir, "backup")
	w.again(t, func() { restore(t, store, backup) })
	w.work(t, s.name, "changed", "2", "changed")
	w.drop(t, s.name, "removed", false)
	w.work(t, s.name, "made", "2", "made")
	latest := map[string]string{"changed": "2", "removed": "", "made": "2"}
	w.Eventually(t, time.Minute, "the member has the changes", values(s.client, latest))
	second := w.marked(t, s.name, s.client, "made", first)

	w.again(t, func() { restore(t, backup, store) })
	w.Eventually(t, 2*time.Minute, "the cluster says that the control plane was set back", w.condition(s.name, clusterv1alpha1.ClusterConditionHeld, "away had seen"))
	if out := w.status(t); !strings.Contains(out, "set back to an older backup") || !strings.Contains(out, "flotilla resume hub") {
		t.Errorf("status says\n%s", out)
	}
	w.work(t, "solo", "pushed", "2", "pushed")
	w.Eventually(t, time.Minute, "the control plane says what it would do in the cluster", func(ctx context.Context) error {
		out, err := run(ctx, nil, "flotilla", "resume", "hub", "--dry-run", "--kubeconfig", w.Hub.Kubeconfig)
		if err != nil || !strings.Contains(out, "take over") || !strings.Contains(out, "in away") {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	spoil(t, s.client, "changed", "2")
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	spoil(t, s.client, "made", "2")
	w.Eventually(t, time.Minute, "the cluster is ready", w.judged(s.name, metav1.ConditionTrue))
	if err := values(s.client, latest)(t.Context()); err != nil {
		t.Errorf("a control plane that was set back has changed something: %v", err)
	}
	w.Eventually(t, time.Minute, "the other cluster goes on", func(ctx context.Context) error {
		return errors.Join(values(solo, map[string]string{"pushed": "2"})(ctx), w.condition("solo", clusterv1alpha1.ClusterConditionHeld, "")(ctx))
	})

	w.Eventually(t, time.Minute, "the control plane knows what it would do everywhere", func(ctx context.Context) error {
		out, err := run(ctx, nil, "flotilla", "resume", "hub", "--dry-run", "--kubeconfig", w.Hub.Kubeconfig)
		if err != nil || !strings.Contains(out, "flotilla resume hub goes on") {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	w.Flotilla(t, "resume", "hub")
	w.Eventually(t, 2*time.Minute, "the control plane goes on", func(ctx context.Context) error {
		return errors.Join(values(s.client, map[string]string{"changed": "1", "removed": "1", "made": "2"})(ctx), values(solo, map[string]string{"pushed": "2"})(ctx),
			w.condition(s.name, clusterv1alpha1.ClusterConditionHeld, "")(ctx), w.condition("solo", clusterv1alpha1.ClusterConditionHeld, "")(ctx))
	})
	w.work(t, s.name, "changed", "3", "changed")
	w.marked(t, s.name, s.client, "changed", second)
	w.again(t, func() {})
	w.work(t, s.name, "changed", "4", "changed")
	w.Eventually(t, time.Minute, "a control plane that starts anew goes on", values(s.client, map[string]string{"changed": "4", "made": "2"}))
	if err := w.condition(s.name, clusterv1alpha1.ClusterConditionHeld, "")(t.Context()); err != nil {
		t.Error(err)
	}
}
