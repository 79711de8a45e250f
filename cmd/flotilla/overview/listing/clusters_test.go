package listing

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// TestHeard: when an agent reported last goes by the control plane's clock, whatever the
// agent's says.
func TestHeard(t *testing.T) {
	at := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	wrote := func(ago time.Duration, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Time: ptr.To(metav1.NewTime(at.Add(-ago))), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const renewed = `{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`
	for name, tc := range map[string]struct {
		says   time.Duration // how far the agent's clock is ahead
		fields []metav1.ManagedFieldsEntry
		want   time.Time
	}{
		"its clock is right":              {0, []metav1.ManagedFieldsEntry{wrote(0, renewed)}, at},
		"its clock is six hours ahead":    {6 * time.Hour, []metav1.ManagedFieldsEntry{wrote(time.Minute, renewed)}, at.Add(-time.Minute)},
		"its clock is three days behind":  {-72 * time.Hour, []metav1.ManagedFieldsEntry{wrote(time.Minute, renewed)}, at.Add(-time.Minute)},
		"somebody else labels the Lease":  {0, []metav1.ManagedFieldsEntry{wrote(time.Hour, renewed), wrote(0, `{"f:metadata":{"f:labels":{"f:a":{}}}}`)}, at.Add(-time.Hour)},
		"nothing tells who wrote it when": {time.Minute, nil, at.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(at.Add(tc.says)))}}
			lease.ManagedFields = tc.fields
			if got := heard(lease); !got.Equal(tc.want) {
				t.Errorf("heard at %s, want %s", got, tc.want)
			}
		})
	}
	if got := heard(&coordinationv1.Lease{}); !got.IsZero() {
		t.Errorf("never renewed, it was heard at %s", got)
	}
}

// TestDoubt: the state of a cluster from before a start is not reported as its present state.
func TestDoubt(t *testing.T) {
	at := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	const before, after = -time.Hour, time.Second
	for name, tc := range map[string]struct {
		up           time.Duration
		mode         clusterv1alpha1.ClusterSyncMode
		made, turned time.Duration // when it joined, and turned ready
		heard        time.Duration // when its agent was heard last; zero: never
		status       metav1.ConditionStatus
		want         metav1.ConditionStatus
		mute         bool // the server does not say when it was started
	}{
		"it was ready before, and nobody has asked it yet":        {up: 4 * time.Second, mode: clusterv1alpha1.Push, made: before, turned: before, status: metav1.ConditionTrue, want: metav1.ConditionUnknown},
		"everybody was asked":                                     {up: 20 * time.Second, mode: clusterv1alpha1.Push, made: before, turned: before, status: metav1.ConditionTrue, want: metav1.ConditionTrue},
		"it turned ready since":                                   {up: 4 * time.Second, mode: clusterv1alpha1.Push, made: before, turned: after, status: metav1.ConditionTrue, want: metav1.ConditionTrue},
		"it has joined since":                                     {up: 4 * time.Second, mode: clusterv1alpha1.Push, made: after, turned: after, status: metav1.ConditionTrue, want: metav1.ConditionTrue},
		"it was not ready before":                                 {up: 4 * time.Second, mode: clusterv1alpha1.Push, made: before, turned: before, status: metav1.ConditionFalse, want: metav1.ConditionFalse},
		"its agent was heard since":                               {up: 4 * time.Second, mode: clusterv1alpha1.Pull, made: before, turned: before, heard: after, status: metav1.ConditionTrue, want: metav1.ConditionTrue},
		"its agent was heard before":                              {up: 40 * time.Second, mode: clusterv1alpha1.Pull, made: before, turned: before, heard: before, status: metav1.ConditionTrue, want: metav1.ConditionUnknown},
		"its agent was waited for, and the control plane says so": {up: 60 * time.Second, mode: clusterv1alpha1.Pull, made: before, turned: before, heard: before, status: metav1.ConditionTrue, want: metav1.ConditionTrue},
		"the control plane does not say when it was started":      {up: 4 * time.Second, mode: clusterv1alpha1.Push, made: before, turned: before, status: metav1.ConditionTrue, want: metav1.ConditionTrue, mute: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := Cluster{Cluster: &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: tc.mode}}}
			c.CreationTimestamp = metav1.NewTime(at.Add(tc.made))
			if tc.heard != 0 {
				c.Heard = at.Add(tc.heard)
			}
			c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: tc.status, LastTransitionTime: metav1.NewTime(at.Add(tc.turned))}}
			s := start{at: at, now: at.Add(tc.up)}
			if tc.mute {
				s = start{}
			}
			s.doubt(&c)
			if got := c.Status.Conditions[0].Status; got != tc.want {
				t.Errorf("ready is %s, want %s", got, tc.want)
			}
		})
	}
}
