package execution_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestAHubThatWasSetBack restores an older copy of a hub's folder: in the member an
// object was changed since, one was removed, and one is new.
func TestAHubThatWasSetBack(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and members")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hub")
	f := &fleet{t: t, at: member.Options{Name: "eu-1", DataDir: t.TempDir(), Nodes: 1}}
	stop := f.startHub(dir)
	f.startMember()
	f.startLoops()
	f.join(t)
	makeNamespace(t, f, "shop")
	changed := f.template(t, configMap("shop", "changed"), 0)
	removed := f.template(t, configMap("shop", "removed"), 0)
	f.applied(t, changed)
	f.applied(t, removed)
	stop()

	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	stop = f.startHub(dir)
	f.startLoops()
	later := configMap("shop", "changed")
	later.Data["a"] = "later"
	f.carry(t, changed, later)
	work, err := f.work(t.Context(), removed)
	if err == nil {
		err = f.hub.Hub.Delete(t.Context(), work)
	}
	if err != nil {
		t.Fatal(err)
	}
	binding := f.template(t, configMap("shop", "made"), 0)
	is := func(ctx context.Context) error {
		var c, none, m corev1.ConfigMap
		if err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "changed"}, &c); err != nil || c.Data["a"] != "later" {
			return fmt.Errorf("changed: %v, %w", c.Data, err)
		}
		if err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "removed"}, &none); !apierrors.IsNotFound(err) {
			return fmt.Errorf("removed: %w", errors.Join(errors.New("it is there"), err))
		}
		if err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "made"}, &m); err != nil {
			return fmt.Errorf("made: %w", err)
		}
		return nil
	}
	eventually(t, "the changes are in the member", is)
	made, err := f.work(t.Context(), binding)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the member carries how far it has seen the hub", func(ctx context.Context) error { return f.marked(ctx, made.ResourceVersion) })
	stop()

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	f.startHub(dir)
	f.startLoops()
	eventually(t, "the cluster says that the hub was set back", f.held)
	f.hub.QuietRevision(t)
	if err := is(t.Context()); err != nil {
		t.Errorf("a hub that was set back has changed the member: %v", err)
	}
	eventually(t, "the Works say what would be done", func(ctx context.Context) error {
		return errors.Join(f.says(ctx, changed, "set back ConfigMap shop/changed"), f.says(ctx, removed, "make ConfigMap shop/removed"))
	})

	preserve := func(yes string) { // the loops may write their statuses meanwhile
		t.Helper()
		for _, binding := range []*workv1alpha2.ResourceBinding{changed, removed} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"preserveResourcesOnDeletion":`+yes+`}}`))
			if err := f.hub.Hub.Patch(t.Context(), mustWork(t, f, binding), patch); err != nil {
				t.Fatal(err)
			}
		}
	}
	preserve("true")
	eventually(t, "the Works say so at each look", func(ctx context.Context) error {
		return errors.Join(f.saysNow(ctx, changed, "set back ConfigMap shop/changed"), f.saysNow(ctx, removed, "make ConfigMap shop/removed"))
	})
	preserve("null")

	f.stopLoops()
	f.startLoops()
	eventually(t, "the cluster says so after a restart, too", f.held)
	if err := f.hub.Hub.Delete(t.Context(), mustWork(t, f, changed)); err != nil {
		t.Fatal(err)
	}
	f.hub.QuietRevision(t)
	if err := is(t.Context()); err != nil {
		t.Errorf("a hub that was set back has changed the member: %v", err)
	}

	if err := setback.New(f.hub.Hub, f.hub.Hub, nil).Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the hub goes on", func(ctx context.Context) error {
		var object corev1.ConfigMap
		if err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "removed"}, &object); err != nil {
			return err
		}
		if err := f.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "changed"}, &object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("what was deleted meanwhile: %w", errors.Join(errors.New("it is there"), err))
		}
		if f.held(ctx) == nil {
			return errors.New("the cluster says that it waits")
		}
		return nil
	})
	f.stopLoops()
	f.startLoops()
	eventually(t, "the hub has the member", func(ctx context.Context) error { return readiness(ctx, f, "ClusterReady") })
	f.hub.QuietRevision(t)
	if f.held(t.Context()) == nil {
		t.Error("the hub waits again after a restart")
	}
}

// held returns an error unless the cluster's condition reports that the hub was set back.
func (f *fleet) held(ctx context.Context) error {
	c := &clusterv1alpha1.Cluster{}
	if err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
		return err
	}
	if held := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld); held == nil || !strings.Contains(held.Message, "flotilla resume hub") {
		return fmt.Errorf("conditions: %v", c.Status.Conditions)
	}
	return nil
}

// says returns an error unless the Work of a binding reports what would be done.
func (f *fleet) says(ctx context.Context, b *workv1alpha2.ResourceBinding, what string) error {
	work, err := f.work(ctx, b)
	if err != nil {
		return err
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil || !strings.Contains(applied.Message, workv1alpha1.WorkHeldPrefix+what) {
		return fmt.Errorf("want %q: %v", what, work.Status.Conditions)
	}
	return nil
}

// saysNow does so for the latest generation of the Work, and checks that it is not applied.
func (f *fleet) saysNow(ctx context.Context, b *workv1alpha2.ResourceBinding, what string) error {
	work, err := f.work(ctx, b)
	if err != nil {
		return err
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied != nil && applied.Status == metav1.ConditionTrue {
		f.t.Errorf("%s: nothing has been done, and the Work is applied: %s", what, applied.Message)
	}
	if applied == nil || applied.ObservedGeneration != work.Generation {
		return fmt.Errorf("%q has not been looked at", what)
	}
	return f.says(ctx, b, what)
}

// marked returns an error unless the member has the mark that it has seen this resource version of the hub.
func (f *fleet) marked(ctx context.Context, resourceVersion string) error {
	system := &corev1.Namespace{}
	if err := f.edge.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		return err
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil {
		return err
	}
	if wanted, err := strconv.ParseInt(resourceVersion, 10, 64); err != nil || claim.Mark == nil || claim.Mark.Revision < wanted {
		return fmt.Errorf("the mark %+v is below %s", claim.Mark, resourceVersion)
	}
	return nil
}

func mustWork(t *testing.T, f *fleet, b *workv1alpha2.ResourceBinding) *workv1alpha1.Work {
	t.Helper()
	work, err := f.work(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return work
}

// startHub runs the hub with a data folder, until stop is called or the test ends. Its
// loops end before it.
func (f *fleet) startHub(dir string) (stop func()) {
	t := f.t
	t.Helper()
	env, err := servertest.StartIn(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	f.hub = env
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		if f.stopLoops != nil {
			f.stopLoops()
		}
		if err := env.Stop(); err != nil {
			t.Errorf("control plane: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
