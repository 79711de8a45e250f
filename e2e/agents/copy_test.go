package agents

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestACopyOfTheControlPlaneBesideIt runs a copy of the control plane's folder beside it:
// it writes nothing to the cluster, and says so; the control plane goes on.
func TestACopyOfTheControlPlaneBesideIt(t *testing.T) {
	t.Parallel() // it waits for most of its time
	dir := fleet.Folder(t)
	w := of(fleet.Own(t, fleet.Options{Dir: dir, Members: []string{"solo"}}))
	solo := w.members["solo"]
	w.work(t, "solo", "changed", "1", "changed")
	w.work(t, "solo", "removed", "1", "removed")
	w.Eventually(t, time.Minute, "the member has it", values(solo, map[string]string{"changed": "1", "removed": "1"}))

	copied, err := w.NewReplica(t.Context(), "copy")
	if err != nil {
		t.Fatal(err)
	}
	w.again(t, func() {
		for _, part := range []string{"etcd", "pki"} {
			if err := os.CopyFS(filepath.Join(dir, "replicas", "copy", "hub", part), os.DirFS(filepath.Join(dir, "hub", part))); err != nil {
				t.Fatal(err)
			}
		}
	})
	w.Eventually(t, time.Minute, "the control plane has the cluster", w.judged("solo", "True"))
	if err := errors.Join(copied.Start(), copied.Ready(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copied.Stop() })
	beside, err := fleet.Client(copied)
	if err != nil {
		t.Fatal(err)
	}

	w.work(t, "solo", "changed", "2", "changed")
	w.drop(t, "solo", "removed", false)
	w.Eventually(t, time.Minute, "the member has the changes", values(solo, map[string]string{"changed": "2", "removed": ""}))
	var changed corev1.ConfigMap
	if err := solo.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "changed"}, &changed); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, time.Minute, "the copy says that it waits", func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := beside.Get(ctx, types.NamespacedName{Name: "solo"}, &c); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if ready == nil || ready.Reason != clusterv1alpha1.ClusterElsewhereReason || !strings.Contains(ready.Message, "stop one of the two") {
			return fmt.Errorf("the condition is %+v", ready)
		}
		return nil
	})
	for _, args := range [][]string{{"unjoin", "solo", "--cluster-kubeconfig", w.Members["solo"].Kubeconfig}, {"unjoin", "solo"}, {"prune", "--cluster", "solo", "--yes"}} {
		out, err := run(t.Context(), nil, "flotilla", append(args, "--kubeconfig", copied.Kubeconfig)...)
		if err == nil || !strings.Contains(err.Error()+out, "another copy of this control plane acts in the cluster") {
			t.Errorf("%s in the copy: %v\n%s", args[0], err, out)
		}
	}
	w.Eventually(t, time.Minute, "the control plane says that there is a copy", func(ctx context.Context) error {
		out := w.Kubectl(t, "", "get", "events", "-A", "-o", "jsonpath={.items[*].reason}")
		if !strings.Contains(out, clusterv1alpha1.EventReasonCopyRefused) {
			return errors.New(out)
		}
		return nil
	})
	version := changed.ResourceVersion
	if err := solo.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "changed"}, &changed); err != nil || changed.ResourceVersion != version {
		t.Errorf("somebody wrote to the cluster: %v, %s after %s", err, changed.ResourceVersion, version)
	}
	if err := errors.Join(values(solo, map[string]string{"removed": ""})(t.Context()), w.judged("solo", "True")(t.Context()), w.condition("solo", clusterv1alpha1.ClusterConditionHeld, "")(t.Context())); err != nil {
		t.Errorf("the control plane does not go on: %v", err)
	}
}
