package taints_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/taints"
)

func TestOwn(t *testing.T) {
	all := []corev1.Taint{
		{Key: "cluster.karmada.io/not-ready", Effect: corev1.TaintEffectNoSchedule}, {Key: "cluster.karmada.io/unreachable", Effect: corev1.TaintEffectNoSchedule},
		{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}, {Key: "cluster.flotilla.io/drain", Effect: corev1.TaintEffectNoExecute},
		{Key: "maintenance", Value: "tonight", Effect: corev1.TaintEffectNoExecute}, {Key: "edge", Effect: corev1.TaintEffectNoSchedule},
	}
	if diff := cmp.Diff([]string{"maintenance=tonight:NoExecute", "edge:NoSchedule"}, taints.Own(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
