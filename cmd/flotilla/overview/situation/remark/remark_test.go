package remark_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
)

// TestOf: which remarks follow from the conditions of a cluster.
func TestOf(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	with := func(such string) string {
		return "8 of 8 templates that were moved off clusters last are not healthy where they were moved to" + such +
			": no more than 1 in a second are moved until they are, instead of as many as there are"
	}
	for name, tc := range map[string]struct {
		says []metav1.Condition
		want []remark.Remark
	}{
		"nothing": {says: []metav1.Condition{is("Ready", "True", "")}},
		"some kinds cannot be read": {
			says: []metav1.Condition{is("Ready", "True", ""), is("ObjectsUnread", "True", "secrets are not read")},
			want: []remark.Remark{{Message: "secrets are not read", Next: "see that the fleet's account may read there, and that nothing in between ends its watches: flotilla describe cluster west"}},
		},
		"of one that is not ready that is not said": {says: []metav1.Condition{is("Ready", "False", ""), is("ObjectsUnread", "True", "secrets are not read")}},
		"what is over": {says: []metav1.Condition{is("EvictionSlowed", "False", "was so")}},
		"many were lost": {
			says: []metav1.Condition{is("MassFailureSuspected", "True", "2 of 3 clusters were lost: nothing is moved off them. If west is lost: say so")},
			want: []remark.Remark{{Message: "2 of 3 clusters were lost: nothing is moved off them", Next: "if west is lost: say so"}},
		},
		"many were lost, which is said with the loss": {says: []metav1.Condition{is("Ready", "False", ""), is("MassFailureSuspected", "True", "2 of 3 clusters were lost: nothing is moved off them. If west is lost: say so")}},
		"it is left slowly": {
			says: []metav1.Condition{is("EvictionSlowed", "True", with(", such as Deployment shop/web"))},
			want: []remark.Remark{{
				Passes: true, Message: "what runs there is moved off slowly: " + with(", such as Deployment shop/web"),
				Next: "see what keeps them from being healthy: flotilla explain deployment/web -n shop; the rate rises by itself once they are",
			}},
		},
		"it is left slowly for what is in no namespace": {
			says: []metav1.Condition{is("EvictionSlowed", "True", with(", such as ClusterRole web"))},
			want: []remark.Remark{{
				Passes: true, Message: "what runs there is moved off slowly: " + with(", such as ClusterRole web"),
				Next: "see what keeps them from being healthy: flotilla explain clusterrole/web; the rate rises by itself once they are",
			}},
		},
		"it is left slowly, and nobody says for what": {
			says: []metav1.Condition{is("EvictionSlowed", "True", with(""))},
			want: []remark.Remark{{
				Passes: true, Message: "what runs there is moved off slowly: " + with(""),
				Next: "see what keeps them from being healthy; the rate rises by itself once they are",
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
			c.Status.Conditions = tc.says
			if diff := cmp.Diff(tc.want, remark.Of(c)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
