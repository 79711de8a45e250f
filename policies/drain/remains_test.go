package drain_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/drain"
)

// TestRemains: what was moved off a cluster has left it once the Work there is gone.
func TestRemains(t *testing.T) {
	for name, tc := range map[string]struct {
		state           drain.State // Left where empty
		reason, message string
		want            string
	}{
		"its Work goes": {want: "Leaves Deployment shop/web: east -> west=2 (the old copy goes)\n"},
		"it waits for what is the fleet's": {reason: "HoldsOwn", message: "CustomResourceDefinition boats goes once what this control plane has of its kind in the cluster has left: Boat shop/web. See what that waits for: flotilla explain boat/web -n shop",
			want: "Leaves Deployment shop/web: east -> west=2 (CustomResourceDefinition boats goes once what this control plane has of its kind in the cluster has left: Boat shop/web) next see what that waits for: flotilla explain boat/web -n shop\n"},
		"others have something in it": {reason: "HoldsOthers", message: "Namespace shop is not deleted in the cluster, as what is not of a template that goes, too, would go with it: ConfigMap a. Annotate this Work with x=true to delete all of it, or set y to leave all of it",
			want: "Stays Deployment shop/web: east -> west=2 (Namespace shop is not deleted in the cluster, as what is not of a template that goes, too, would go with it: ConfigMap a) next see that nobody misses it, then: flotilla kubectl annotate work -n karmada-es-east web propagation.flotilla.io/allow-cascade=true\n"},
		"the cluster keeps it": {reason: "Terminating", message: "Deployment shop/web is being deleted in the cluster, kept by its finalizers: a/b",
			want: "Leaves Deployment shop/web: east -> west=2 (Deployment shop/web is being deleted in the cluster, kept by its finalizers: a/b) next put right in the cluster what keeps it\n"},
		"it may be the last copy": {reason: "LastCopy", message: "the agent was away (asked at 2026-12-01T05:05:55.273479Z)",
			want: "Leaves Deployment shop/web: east -> west=2 (the agent was away) next flotilla explain deployment/web -n shop\n"},
		"it stays for another cause": {state: drain.Stays, want: "Stays Deployment shop/web: east -> west=2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			row := drain.Row{Kind: "Deployment", Namespace: "shop", Name: "web", State: drain.Left, To: []workv1alpha2.TargetCluster{{Name: "west", Replicas: 2}}}
			if tc.state != "" {
				row.State = tc.state
			}
			work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "web"}}
			if tc.reason != "" {
				work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: tc.reason, Message: tc.message}}
			}
			row.Remains(work)
			got, next := text([]drain.Row{{Kind: row.Kind, Namespace: row.Namespace, Name: row.Name, State: row.State, To: row.To, Why: row.Why}}), row.Next
			if next != "" {
				got = got[:len(got)-1] + " next " + next + "\n"
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
