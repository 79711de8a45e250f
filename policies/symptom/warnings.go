package symptom

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// makers are the controllers that make Pods for workloads whose status does not say why they cannot.
var makers = []string{"statefulset-controller", "daemonset-controller", "daemon-controller", "job-controller"}

// making is what such a controller begins with.
var making = regexp.MustCompile(`^(create Pod \S+ in \w+ \S+ failed error: |Error creating: )`)

// ToldByMaker returns what the controller of a workload says of why it makes no Pods, by its last Warning about the workload
// with the UID. It is the zero value where there is none, and of what others wrote.
func PublicByMaker(warnings []corev1.Event, uid types.UID) Symptom {
	var last *corev1.Event
	for i := range warnings {
		w := &warnings[i]
		if w.InvolvedObject.UID == uid && w.Reason == "FailedCreate" && slices.Contains(makers, w.Source.Component) && (last == nil || seen(w).After(seen(last))) {
			last = w
		}
	}
	if last == nil {
		return Symptom{}
	}
	return FromEvent(last.Reason, making.ReplaceAllString(strings.TrimPrefix(last.Message, combined), ""))
}

// seen is when an Event was seen last.
func seen(e *corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
