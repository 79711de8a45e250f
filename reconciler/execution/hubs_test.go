package execution_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
)

// TestTwoHubsOneMember: a second hub tries to join a member that another hub has claimed.
func TestTwoHubsOneMember(t *testing.T) {
	if testing.Short() {
		t.Skip("runs two control planes and a member")
	}
	t.Parallel()
	first := newFleet(t)
	first.join(t)
	makeNamespace(t, first, "shop")
	binding := first.template(t, configMap("shop", "ours"), 0)
	eventually(t, "the first hub's objects are in the member", func(ctx context.Context) error {
		return first.edge.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "ours"}, &corev1.ConfigMap{})
	})
	if err := first.edge.Create(t.Context(), configMap("shop", "nobodys")); err != nil {
		t.Fatal(err)
	}

	second := &fleet{t: t, hub: servertest.New(t), at: first.at, member: first.member, edge: first.edge}
	second.startLoops()
	options := join.Options{Name: "eu-1", Hub: second.hub.Hub, Member: second.edge, MemberConfig: second.member.Config}
	if err := join.Join(t.Context(), options); !errors.Is(err, join.ErrClaimed) {
		t.Errorf("a second hub joined the member of the first: %v", err)
	}

	id, err := join.HubIdentity(t.Context(), second.hub.Hub)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	planned, err := join.PlanTakeOver(t.Context(), second.hub.Hub, id, second.edge, second.member.Config)
	if err != nil {
		t.Fatal(err)
	}
	want := []join.ForeignObject{{Object: "Namespace shop", Fate: join.FateConflict}, {Object: "ConfigMap shop/ours", Fate: join.FateStays}}
	if diff := cmp.Diff(want, planned.Objects); diff != "" || planned.From == nil || planned.From.Cluster != "eu-1" {
		t.Errorf("a take-over from %+v (-want +got):\n%s", planned.From, diff)
	}

	options.TakeOver = true
	if err := join.Join(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second hub has the member", func(ctx context.Context) error { return readiness(ctx, second, "ClusterReady") })
	eventually(t, "the first hub finds that it lost the member", func(ctx context.Context) error { return readiness(ctx, first, "ClaimedByAnotherHub") })
	eventually(t, "the second hub leaves the namespace to the first", func(ctx context.Context) error {
		work, err := second.namespaceWork(ctx, "shop")
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied); c == nil || !strings.Contains(c.Message, "belongs to the hub with the identity") {
			return fmt.Errorf("status: %v", work.Status)
		}
		return nil
	})
	removeNamespace(t, second, "shop")
	stands(t, first)

	if err := first.hub.Hub.Delete(t.Context(), binding); err != nil { // it names the cluster
		t.Fatal(err)
	}
	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-1", Hub: first.hub.Hub, Member: first.edge}); err != nil {
		t.Fatal(err)
	}
	stands(t, first)
	eventually(t, "the second hub has the member still", func(ctx context.Context) error { return readiness(ctx, second, "ClusterReady") })
	account := client.ObjectKey{Namespace: "karmada-cluster", Name: "karmada-eu-1"}
	if err := second.edge.Get(t.Context(), account, &corev1.ServiceAccount{}); err != nil {
		t.Errorf("the first hub left with the account of the second: %v", err)
	}

	if err := join.Unjoin(t.Context(), join.UnjoinOptions{Name: "eu-1", Hub: second.hub.Hub, Member: second.edge}); err != nil {
		t.Fatal(err)
	}
	stands(t, first)
	system := &corev1.Namespace{}
	if err := first.edge.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil || system.Annotations[clusterv1alpha1.ClaimAnnotation] != "" {
		t.Errorf("the claim of the hub that left: %v, %v", system.Annotations, err)
	}
}

// TestAMemberThatJoinedBeforeThereWereClaims: a member without a claim.
func TestAMemberThatJoinedBeforeThereWereClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	t.Parallel()
	f := newFleet(t)
	f.join(t)
	makeNamespace(t, f, "shop")
	binding := f.template(t, configMap("shop", "ours"), 0)
	f.applied(t, binding)
	f.stopLoops()
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	patch := []byte(`{"metadata":{"annotations":{"cluster.flotilla.io/claim":null}}}`)
	if err := f.edge.Patch(t.Context(), system, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	before := configMap("shop", "ours")
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}

	f.startLoops()
	eventually(t, "the member carries a claim", func(ctx context.Context) error {
		system := &corev1.Namespace{}
		if err := f.edge.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil || system.Annotations[clusterv1alpha1.ClaimAnnotation] == "" {
			return fmt.Errorf("annotations: %v, %w", system.Annotations, err)
		}
		return nil
	})
	f.idle(t)
	after := configMap("shop", "ours")
	if err := f.edge.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("an object was written for the claim: %v, revision %s and %s", err, before.ResourceVersion, after.ResourceVersion)
	}
	work, err := f.work(t.Context(), binding)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.hub.Hub.Delete(t.Context(), work); err != nil { // as the binding's loop does
		t.Fatal(err)
	}
	removeNamespace(t, f, "shop")
	eventually(t, "what was applied then goes", func(ctx context.Context) error {
		shop := &corev1.Namespace{}
		if err := f.edge.Get(ctx, client.ObjectKey{Name: "shop"}, shop); err == nil && shop.DeletionTimestamp.IsZero() {
			return errors.New("it is there")
		}
		return nil
	})
}

// readiness reports whether the condition Ready of the fleet's cluster has a reason.
func readiness(ctx context.Context, f *fleet, reason string) error {
	c := &clusterv1alpha1.Cluster{}
	if err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, c); err != nil {
		return err
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); ready == nil || ready.Reason != reason {
		return fmt.Errorf("Ready = %v", ready)
	}
	return nil
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"a": "b"}}
}

func makeNamespace(t *testing.T, f *fleet, name string) {
	t.Helper()
	if err := f.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace's Work is settled", func(ctx context.Context) error {
		return reconciled(ctx, f, name)
	})
}

// reconciled returns an error until the Work of a namespace has been reconciled, if the hub has a
// cluster.
func reconciled(ctx context.Context, f *fleet, name string) error {
	err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: "eu-1"}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	work, err := f.namespaceWork(ctx, name)
	if err == nil && len(work.Status.Conditions) == 0 {
		return fmt.Errorf("status: %v", work.Status)
	}
	return err
}

func removeNamespace(t *testing.T, f *fleet, name string) {
	t.Helper()
	if err := f.hub.Hub.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace leaves its hub", func(ctx context.Context) error {
		err := f.hub.Hub.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		if _, err = f.namespaceWork(ctx, name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("its Work is there: %v", err)
		}
		return nil
	})
}

// stands fails unless the objects of the first hub, and those that nobody manages, are still in the member.
func stands(t *testing.T, f *fleet) {
	t.Helper()
	shop := &corev1.Namespace{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Name: "shop"}, shop); err != nil || !shop.DeletionTimestamp.IsZero() {
		t.Errorf("the first hub's namespace in the member: %v, deleted at %s", err, shop.DeletionTimestamp)
	}
	for _, name := range []string{"ours", "nobodys"} {
		if err := f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &corev1.ConfigMap{}); err != nil {
			t.Errorf("ConfigMap %s: %v", name, err)
		}
	}
}

// namespaceWork returns the Work of a namespace.
func (f *fleet) namespaceWork(ctx context.Context, name string) (*workv1alpha1.Work, error) {
	work := &workv1alpha1.Work{}
	err := f.hub.Hub.Get(ctx, client.ObjectKey{
		Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: workv1alpha2.WorkName("Namespace", name, ""),
	}, work)
	return work, err
}
