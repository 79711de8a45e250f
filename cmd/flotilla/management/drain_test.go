package management_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler"
)

// drained is a control plane that schedules, and whose clusters are written by hand: what leaves them
// has left when the test says so.
type drained struct {
	*testing.T
	env *servertest.Env
}

func newDrained(t *testing.T) *drained {
	d := &drained{T: t, env: hubs.Env(t)}
	d.env.Loops(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"scheduler", "rebalance"}})
	})
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.SyncMode, c.Spec.ID = clusterv1alpha1.Pull, "id-of-"+name
		d.check(d.env.Hub.Create(t.Context(), c))
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ClusterReadyReason, LastTransitionTime: metav1.Now()}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(99, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(99, resource.DecimalSI),
		}}
		d.check(d.env.Hub.Status().Update(t.Context(), c))
	}
	return d
}

func (d *drained) check(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// run has a Deployment of four replicas placed in clusters.
func (d *drained) run(name string, clusters ...string) {
	d.Helper()
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: workv1alpha2.BindingName("Deployment", name), Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name},
		Replicas: 4, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
		Placement: &policyv1alpha1.Placement{
			ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			},
		},
	}
	d.check(d.env.Hub.Create(d.Context(), b))
	d.until(name, "it is placed", func(b *workv1alpha2.ResourceBinding) bool { return len(b.Spec.Clusters) == len(clusters) })
}

func (d *drained) until(name, what string, holds func(*workv1alpha2.ResourceBinding) bool) *workv1alpha2.ResourceBinding {
	d.Helper()
	b := &workv1alpha2.ResourceBinding{}
	servertest.Eventually(d.T, what, func(ctx context.Context) error {
		err := d.env.Hub.Get(ctx, client.ObjectKey{Namespace: "shop", Name: workv1alpha2.BindingName("Deployment", name)}, b)
		if err == nil && !holds(b) {
			err = fmt.Errorf("%v, %v, %v", b.Spec.Clusters, b.Spec.GracefulEvictionTasks, b.Annotations)
		}
		return err
	})
	return b
}

// leave says that what a template leaves has gone.
func (d *drained) leave(name string) {
	d.Helper()
	b := d.until(name, "it leaves", func(b *workv1alpha2.ResourceBinding) bool { return len(b.Spec.GracefulEvictionTasks) > 0 })
	d.check(d.env.Hub.Patch(d.Context(), b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"gracefulEvictionTasks":null}}`))))
}

// moved is what a drain says without what it waited for: how long that takes depends on the machine.
func moved(r commandtest.Result) commandtest.Result {
	r.Err = regexp.MustCompile(`(?m)^waiting for .*\n`).ReplaceAllString(r.Err, "")
	return r
}

// TestDrain drains a cluster in which one template stays that has no other place, goes on when
// that is gone, and brings back what was moved.
func TestDrain(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	d := newDrained(t)
	at := []string{"--kubeconfig", d.env.Kubeconfig}
	d.check(client.IgnoreAlreadyExists(d.env.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	empty := transcript(t, "", at, "drain east --dry-run")
	d.run("stuck", "east")
	d.run("web", "east", "west")
	before := d.env.QuietRevision(t)
	transcripts := empty + transcript(t, "", at, "drain east --dry-run", "drain east --dry-run -o json")
	if after := d.env.Revision(t); after != before {
		t.Errorf("dry runs wrote %v", d.env.Written(t, before))
	}
	first := make(chan commandtest.Result, 1)
	go func() { first <- call(t, "", append([]string{"drain", "east"}, at...)...) }()
	d.until("stuck", "it stays", func(b *workv1alpha2.ResourceBinding) bool { r, _ := placement.RecordOf(b); return r.Stays != nil })
	d.leave("web")
	transcripts += moved(<-first).To("drain east")
	transcripts += transcript(t, "", at, "drain east --timeout 1m")
	d.check(d.env.Hub.Delete(t.Context(), &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stuck-deployment"}}))
	transcripts += transcript(t, "", at, "drain east -o json", "drain east", "uncordon east --return --dry-run", "uncordon east --return", "uncordon east --return")
	golden(t, "drain.txt", transcripts)
	if b := d.until("web", "it is back", func(*workv1alpha2.ResourceBinding) bool { return true }); len(b.Spec.Clusters) != 2 {
		t.Errorf("it runs in %v", b.Spec.Clusters)
	}
	if !strings.Contains(transcripts, "Deployment shop/web is placed in east=2, west=2\n") {
		t.Error("it was not brought back")
	}
}

// TestDrainOverQuota drains a cluster in which a template wants more replicas than its quota allows: those that run go, and once the
// quota is raised there are more.
func TestDrainOverQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane")
	}
	d := newDrained(t)
	at := []string{"--kubeconfig", d.env.Kubeconfig}
	d.check(client.IgnoreAlreadyExists(d.env.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	quota.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
	d.check(d.env.Hub.Create(t.Context(), quota))
	d.run("web", "east", "west")
	b := d.until("web", "it is there", func(*workv1alpha2.ResourceBinding) bool { return true })
	d.check(d.env.Hub.Patch(t.Context(), b, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":8,"replicaRequirements":{"resourceRequest":{"cpu":"1"}}}}`))))
	d.until("web", "more is refused", func(b *workv1alpha2.ResourceBinding) bool {
		r, _ := placement.RecordOf(b)
		return r.Reason == workv1alpha2.BindingReasonQuotaExceeded
	})
	transcripts := transcript(t, "", at, "drain east --dry-run")
	first := make(chan commandtest.Result, 1)
	go func() { first <- call(t, "", append([]string{"drain", "east"}, at...)...) }()
	d.leave("web")
	transcripts += moved(<-first).To("drain east")
	d.until("web", "it wants more still", func(b *workv1alpha2.ResourceBinding) bool {
		r, _ := placement.RecordOf(b)
		return r.Reason == workv1alpha2.BindingReasonQuotaExceeded
	})
	d.check(d.env.Hub.Patch(t.Context(), quota, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"overall":{"cpu":"8"}}}`))))
	d.until("web", "there is more of it", func(b *workv1alpha2.ResourceBinding) bool {
		r, _ := placement.RecordOf(b)
		return r.Succeeded() && placement.Text(b.Spec.Clusters) == "{west:8}"
	})
	golden(t, "drain-quota.txt", transcripts)
}
