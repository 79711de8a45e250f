package taints_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/taints"
)

// TestByReadiness says which taints follow from how a cluster does.
func TestByReadiness(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	own := corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	noExecute := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	unreachable := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnreachable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &now}
	is := func(s metav1.ConditionStatus) *metav1.Condition { return &metav1.Condition{Status: s} }
	cases := map[string]struct {
		current   []corev1.Taint
		condition *metav1.Condition
		want      []corev1.Taint
	}{
		"never told":                         {nil, nil, []corev1.Taint{notReady}},
		"ready":                              {[]corev1.Taint{own}, is(metav1.ConditionTrue), []corev1.Taint{own}},
		"not ready":                          {[]corev1.Taint{own}, is(metav1.ConditionFalse), []corev1.Taint{own, notReady}},
		"still not ready":                    {[]corev1.Taint{notReady, own}, is(metav1.ConditionFalse), []corev1.Taint{notReady, own}},
		"ready again":                        {[]corev1.Taint{notReady, own, unreachable}, is(metav1.ConditionTrue), []corev1.Taint{own}},
		"silent":                             {[]corev1.Taint{notReady}, is(metav1.ConditionUnknown), []corev1.Taint{unreachable}},
		"a user's taint of the same key":     {[]corev1.Taint{noExecute}, is(metav1.ConditionTrue), []corev1.Taint{noExecute}},
		"a user's taint next to one of ours": {[]corev1.Taint{noExecute}, is(metav1.ConditionFalse), []corev1.Taint{noExecute, notReady}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, taints.ByReadiness(tc.current, tc.condition, now)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}
