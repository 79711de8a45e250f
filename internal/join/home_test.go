package join_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// TestNoClusterLeavesFromACopy checks that the accounts and the claim in a member
// stay where another copy of the hub acts.
func TestNoClusterLeavesFromACopy(t *testing.T) {
	elsewhere := []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterElsewhereReason}}
	moving := []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterMovingReason}}
	ready := []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.ClusterReadyReason}}
	cases := map[string]struct {
		says          []metav1.Condition
		gone          bool // the Cluster has left already
		force, member bool
		witness       bool   // the member can only be asked
		at, mode      string // where the hub acts in the member, and how
		mark          *hubclaim.Mark
		hold          *hubclaim.Hold
		want          error
	}{
		"as far as the Cluster says":                 {says: elsewhere, want: join.ErrElsewhere},
		"while it is not known yet":                  {says: moving, want: join.ErrMoving},
		"by force, and the member as it is":          {says: elsewhere, force: true},
		"with the member, before the hub has looked": {says: ready, member: true, at: "there", want: join.ErrElsewhere},
		"with the member, by force":                  {says: elsewhere, member: true, force: true, at: "there", want: join.ErrElsewhere},
		"the rest of a cluster that has left":        {gone: true, member: true, at: "there", want: join.ErrElsewhere},
		"where the hub acts":                         {says: ready, member: true, at: "here"},
		"where an agent acts":                        {says: ready, member: true, at: "there", mode: hubclaim.Pull},
		"where an agent has seen more than there is": {says: ready, member: true, force: true, mode: hubclaim.Pull, mark: &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}, want: setback.ErrBehind},
		"where that was of an earlier run":           {says: ready, member: true, at: "here", mark: &hubclaim.Mark{Run: 1, ID: "a", Revision: 7}},
		"without the member, which has seen more":    {says: ready, witness: true, at: "here", mark: &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}, want: setback.ErrBehind},
		"the same by force":                          {says: ready, witness: true, force: true, at: "here", mark: &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}},
		"the same of one that is not ready":          {witness: true, at: "here", mark: &hubclaim.Mark{Run: 2, ID: "b", Revision: 7}},
		"without the member, where the hub acts":     {says: ready, witness: true, at: "here"},
		"while the hub waits":                        {says: ready, hold: &hubclaim.Hold{Clusters: []string{"eu-1"}}, want: join.ErrHeld},
		"while it waits for another one":             {says: ready, hold: &hubclaim.Hold{Clusters: []string{"us-1"}}},
		"by force while it waits":                    {says: ready, force: true, hold: &hubclaim.Hold{Clusters: []string{"eu-1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := stranded(t)
			history := hubclaim.History{Runs: []hubclaim.Run{{Number: 1, ID: "a"}}, Hold: tc.hold}
			create := func(c client.Client, objs ...client.Object) {
				t.Helper()
				for _, obj := range objs {
					if err := c.Create(t.Context(), obj); err != nil {
						t.Fatal(err)
					}
				}
			}
			create(hub,
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "hub", Annotations: map[string]string{clusterv1alpha1.HistoryAnnotation: history.Encode()}}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: clusterv1alpha1.HubInfoName}, Data: map[string]string{clusterv1alpha1.HubInfoPlaceKey: "here"}})
			cluster := &clusterv1alpha1.Cluster{}
			if err := hub.Get(t.Context(), client.ObjectKey{Name: "eu-1"}, cluster); err != nil {
				t.Fatal(err)
			}
			cluster.Finalizers, cluster.Status.Conditions = nil, tc.says
			if err := hub.Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
			if tc.gone {
				if err := hub.Delete(t.Context(), cluster); err != nil {
					t.Fatal(err)
				}
			}
			o := join.UnjoinOptions{Name: "eu-1", Hub: hub, Force: tc.force, Wait: time.Second}
			claim := (&hubclaim.Claim{Hub: "hub", Cluster: "eu-1", Mode: tc.mode, Mark: tc.mark, Home: &hubclaim.Home{At: tc.at}}).Encode()
			if tc.witness {
				member := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
				create(member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "ours", Annotations: map[string]string{clusterv1alpha1.ClaimAnnotation: claim}}})
				o.Witness = member
			}
			if tc.member {
				o.Member = fake.NewClientBuilder().WithScheme(scheme.New()).Build()
				create(o.Member, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "ours", Annotations: map[string]string{clusterv1alpha1.ClaimAnnotation: claim}}})
			}
			if err := join.Unjoin(t.Context(), o); !errors.Is(err, tc.want) {
				t.Errorf("Unjoin = %v, want %v", err, tc.want)
			}
			if o.Member == nil {
				return
			}
			system := &corev1.Namespace{}
			if err := o.Member.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
				t.Fatal(err)
			}
			if kept := system.Annotations[clusterv1alpha1.ClaimAnnotation] == claim; kept != (tc.want != nil) {
				t.Errorf("the claim is kept: %t", kept)
			}
		})
	}
}

// TestAMemberIsJoinedFromOnePlace checks that a copy of the hub does not join a
// member in which the hub acts, unless TakeOver is set.
func TestAMemberIsJoinedFromOnePlace(t *testing.T) {
	member := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "u"}}).Build()
	o := join.ClaimOptions{Member: member, Hub: "hub", Cluster: "eu-1", Mode: hubclaim.Push}
	steps := []struct {
		place    string
		takeOver bool
		want     error
		at       string
	}{
		{place: "here", at: "here"},
		{place: "there", want: join.ErrElsewhere, at: "here"},
		{place: "", at: "here"},
		{place: "there", takeOver: true, at: "there"},
		{place: "here", want: join.ErrElsewhere, at: "there"},
	}
	for i, step := range steps {
		o.Place, o.TakeOver = step.place, step.takeOver
		if err := join.Claim(t.Context(), o); !errors.Is(err, step.want) {
			t.Errorf("step %d: Claim = %v, want %v", i, err, step.want)
		}
		system := &corev1.Namespace{}
		if err := member.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, system); err != nil {
			t.Fatal(err)
		}
		claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
		if err != nil || claim == nil || claim.Home == nil || claim.Home.At != step.at {
			t.Errorf("step %d: the claim is %+v, %v; want it at %s", i, claim, err, step.at)
		}
	}
}
