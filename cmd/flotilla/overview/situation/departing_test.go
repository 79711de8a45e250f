package situation_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestWhenALostClusterIsLeft: the problem of a lost cluster says when failover moves what runs there.
func TestWhenALostClusterIsLeft(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := situation.NewSurvey(at.Add(time.Minute), "")
	east := member("east")
	east.Status.Conditions[0].Status, east.Status.Conditions[0].Reason = metav1.ConditionFalse, clusterv1alpha1.ClusterNotReachableReason
	east.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at)
	east.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: ptr.To(metav1.NewTime(at))}}
	s.Cluster(east, time.Time{})
	s.Cluster(member("west"), time.Time{})
	web := bindingOf("web")
	web.Spec.Placement = &policyv1alpha1.Placement{}
	web.Annotations = map[string]string{workv1alpha2.SchedulingDecisionAnnotation: `{"reason":"Success","failover":{"tolerance":300,"skew":20}}`}
	s.Binding(web, nil)
	const want = "; 1 template leaves it at 12:05:00 UTC, unless it is back"
	problems := s.Fleet().Problems
	for _, p := range problems {
		if p.Kind == "Cluster" && strings.HasSuffix(p.Message, want) {
			return
		}
	}
	t.Errorf("no problem of the cluster ends with %q: %+v", want, problems)
}
