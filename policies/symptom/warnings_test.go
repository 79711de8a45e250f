package symptom

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhyNoPodsAreMade(t *testing.T) {
	warning := func(uid types.UID, reason, by, message string, at int64) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: uid}, Reason: reason, Source: corev1.EventSource{Component: by}, Message: message, LastTimestamp: metav1.Unix(at, 0)}
	}
	const set, job = "statefulset-controller", "job-controller"
	want := Symptom{Reason: "FailedCreate", Text: `FailedCreate: pods "web-0" is forbidden: exceeded quota: shop`}
	newer := warning("u", "FailedCreate", set, `create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: shop`, 0)
	newer.LastTimestamp, newer.EventTime = metav1.Time{}, metav1.NewMicroTime(metav1.Unix(20, 0).Time)
	for name, tc := range map[string]struct {
		warnings []corev1.Event
		want     Symptom
	}{
		"there are none":               {},
		"a quota refuses those of set": {[]corev1.Event{warning("u", "FailedCreate", set, `create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: shop`, 10)}, want},
		"and those of a Job":           {[]corev1.Event{warning("u", "FailedCreate", job, `Error creating: pods "web-0" is forbidden: exceeded quota: shop`, 10)}, want},
		"it was seen several times":    {[]corev1.Event{warning("u", "FailedCreate", job, `(combined from similar events): Error creating: pods "web-0" is forbidden: exceeded quota: shop`, 10)}, want},
		"the last counts":              {[]corev1.Event{warning("u", "FailedCreate", set, "before", 10), newer, warning("u", "FailedCreate", set, "before that", 5)}, want},
		"of another workload":          {warnings: []corev1.Event{warning("v", "FailedCreate", set, "x", 10)}},
		"of somebody else's":           {warnings: []corev1.Event{warning("u", "FailedCreate", "somebody", "hunter2", 10)}},
		"of something else":            {warnings: []corev1.Event{warning("u", "RecreatingFailedPod", set, "x", 10)}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PublicByMaker(tc.warnings, "u")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
