package situation_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestWhatToDoAboutACluster: the next step is that of the reason, and of the mode.
func TestWhatToDoAboutACluster(t *testing.T) {
	for name, tc := range map[string]struct {
		mode   clusterv1alpha1.ClusterSyncMode
		reason string
		want   string
	}{
		"nobody answers":             {clusterv1alpha1.Push, "ClusterNotReachable", "see whether east is up and accepts the fleet's credentials: flotilla describe cluster east"},
		"an agent is silent":         {clusterv1alpha1.Pull, "ClusterStatusUnknown", "see whether flotilla-agent runs for east and reaches the control plane: flotilla describe cluster east"},
		"another has it":             {clusterv1alpha1.Push, "ClaimedByAnotherHub", "flotilla unjoin east leaves it to the other control plane; flotilla join east --take-over --dry-run says what taking it back means"},
		"another has it, by agent":   {clusterv1alpha1.Pull, "ClaimedByAnotherHub", "flotilla unregister east leaves it to the other control plane; flotilla register --cluster-name east --take-over --dry-run says what taking it back means"},
		"a copy of the hub has it":   {clusterv1alpha1.Push, "ActsElsewhere", "stop this control plane, or the one that runs from a copy of its folder: flotilla describe cluster east"},
		"the hub has moved":          {clusterv1alpha1.Push, "Moving", "wait half a minute: this control plane was elsewhere when it last acted there"},
		"another cluster answers":    {clusterv1alpha1.Push, "IdentityMismatch", "flotilla unjoin east, and then flotilla join east, if the cluster that answers there is to have its place"},
		"our token was revoked":      {clusterv1alpha1.Push, "CredentialsRefused", "flotilla join east --cluster-kubeconfig FILE brings new credentials"},
		"an agent's was, over there": {clusterv1alpha1.Pull, "CredentialsRefused", "see whether flotilla-agent runs for east and reaches the control plane: flotilla describe cluster east"},
	} {
		t.Run(name, func(t *testing.T) {
			s := situation.NewSurvey(now, "")
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: tc.mode}}
			c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: tc.reason, Message: "m"}}
			s.Cluster(c, time.Time{})
			want := []situation.Problem{{State: situation.Failed, Kind: "Cluster", Name: "east", Message: "m", Next: tc.want}}
			if diff := cmp.Diff(want, s.Fleet().Problems); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
