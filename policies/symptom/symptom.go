// Package symptom says what ails a workload in a cluster.
//
// In go its Pods, or an Event; out comes a Symptom: the reason, and a line of text. It asks
// nobody, and does not judge health.
package symptom

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Symptom is what a cluster says of a workload that is not healthy there. The zero value
// says nothing.
type Symptom struct {
	// Reason is that of the Pods or of the last Warning, such as ErrImagePull; empty where
	// nothing is known.
	Reason string
	// Text is the reason with its message, and the number of Pods.
	Text string
	// Unread is why the cluster could not be asked.
	Unread string
	// Denied says that the caller may not ask it.
	Denied bool
}

// String says what is wrong, as far as that is known.
func (s Symptom) String() string {
	switch {
	case s.Text != "":
		return s.Text
	case s.Unread != "":
		return "it is there and is not healthy; why is not known: " + s.Unread
	default:
		return "it is there and is not healthy"
	}
}

// longestMessage is how many characters of a message are repeated, mark included.
const longestMessage = 201

// Of says what ails Pods: what keeps most of those that are not well from being it.
// It is the zero value where all are.
func Of(pods []*corev1.Pod) Symptom {
	count, says := map[string]int{}, map[string]string{}
	for _, pod := range pods {
		reason, message := ails(pod)
		if reason == "" {
			continue
		}
		count[reason]++
		if says[reason] == "" || message < says[reason] && message != "" {
			says[reason] = message
		}
	}
	if len(count) == 0 {
		return Symptom{}
	}
	reasons := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	of := func(reason string) string {
		return fmt.Sprintf("%d of %d %s", count[reason], len(pods), plural(len(pods)))
	}
	first := reasons[0]
	text := describe(first, says[first]) + " (" + of(first) + ")"
	for _, reason := range reasons[1:] {
		text += fmt.Sprintf("; %s (%s)", reason, of(reason))
	}
	return Symptom{Reason: first, Text: text}
}

func plural(pods int) string {
	if pods == 1 {
		return "Pod"
	}
	return "Pods"
}

// describe returns a reason with its message.
func describe(reason, message string) string {
	message = excerpt.Runes(strings.Join(strings.Fields(message), " "), longestMessage)
	return strings.TrimSuffix(reason+": "+message, ": ")
}

// combined begins the message of an Event that stands for several, and says nothing of why.
const combined = "(combined from similar events): "

// FromEvent returns that of a Warning of a cluster.
func FromEvent(reason, message string) Symptom {
	return Symptom{Reason: reason, Text: describe(reason, strings.TrimPrefix(message, combined))}
}

// ails returns what keeps one Pod from being well, and its message; empty for one
// that is, or is on its way.
func ails(pod *corev1.Pod) (reason, message string) {
	if pod.DeletionTimestamp != nil {
		return "", ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "FailedScheduling", c.Message
		}
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range statuses {
		if reason, message := stopped(&statuses[i]); reason != "" {
			return reason, message
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return cmp.Or(pod.Status.Reason, "Failed"), pod.Status.Message
	}
	for i := range statuses {
		if c := &statuses[i]; c.State.Running != nil && !c.Ready && pod.Status.Phase == corev1.PodRunning {
			return "NotReady", fmt.Sprintf("container %s runs, and its readiness probe does not succeed", c.Name)
		}
	}
	return "", ""
}

// stopped returns why a container does not run though it should.
func stopped(c *corev1.ContainerStatus) (reason, message string) {
	ended := c.State.Terminated
	if wait := c.State.Waiting; wait != nil {
		switch wait.Reason {
		case "", "ContainerCreating", "PodInitializing":
			return "", ""
		case "CrashLoopBackOff":
			ended = c.LastTerminationState.Terminated
			if ended == nil {
				return wait.Reason, "container " + c.Name
			}
		default:
			return wait.Reason, cmp.Or(wait.Message, "container "+c.Name)
		}
	}
	if ended == nil || ended.ExitCode == 0 && c.State.Waiting == nil {
		return "", ""
	}
	how := fmt.Sprintf("container %s ended with exit code %d", c.Name, ended.ExitCode)
	if ended.Message != "" {
		how += ": " + ended.Message
	}
	if ended.Reason == "OOMKilled" {
		return ended.Reason, fmt.Sprintf("container %s took more memory than its limit allows", c.Name)
	}
	if c.State.Waiting != nil {
		return c.State.Waiting.Reason, how
	}
	return cmp.Or(ended.Reason, "Error"), how
}
