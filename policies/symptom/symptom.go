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
	all := countOf(pods, func(f finding) string { return f.message })
	if len(all.reasons) == 0 {
		return Symptom{}
	}
	of := func(reason string) string {
		return fmt.Sprintf("%d of %d %s", all.count[reason], len(pods), plural(len(pods)))
	}
	first := all.reasons[0]
	out := symptomOf(first, all.says[first])
	out.Text += " (" + of(first) + ")"
	for _, reason := range all.reasons[1:] {
		out.Text += fmt.Sprintf("; %s (%s)", symptomOf(reason, "").Text, of(reason))
	}
	return out
}

// Public is Of as it may be shown to more people than may read the Pods: without what programs in containers wrote, of the
// most frequent reason alone, and without numbers, so that it stays the same while Pods come and go.
func Public(pods []*corev1.Pod) Symptom {
	all := countOf(pods, func(f finding) string { return f.public })
	if len(all.reasons) == 0 {
		return Symptom{}
	}
	return symptomOf(all.reasons[0], all.says[all.reasons[0]])
}

// inTurn are reasons between which kubelets go back and forth: something fails, and they wait before they try it again.
var inTurn = [][]string{{"ErrImagePull", "ImagePullBackOff"}, {"Error", "CrashLoopBackOff"}}

// GoesOn reports whether the symptom is of the same thing as the one of a moment ago, whose reason is was.
func (s Symptom) GoesOn(was string) bool {
	return was == s.Reason || slices.ContainsFunc(inTurn, func(pair []string) bool {
		return slices.Contains(pair, was) && slices.Contains(pair, s.Reason)
	})
}

// counted are the reasons of Pods, the most frequent first, how many have each, and a message of each.
type counted struct {
	reasons []string
	count   map[string]int
	says    map[string]string
}

func countOf(pods []*corev1.Pod, text func(finding) string) counted {
	out := counted{count: map[string]int{}, says: map[string]string{}}
	for _, pod := range pods {
		f := ails(pod)
		if f.reason == "" {
			continue
		}
		out.count[f.reason]++
		if message := text(f); out.says[f.reason] == "" || message < out.says[f.reason] && message != "" {
			out.says[f.reason] = message
		}
	}
	out.reasons = slices.SortedFunc(maps.Keys(out.count), func(a, b string) int {
		return cmp.Or(cmp.Compare(out.count[b], out.count[a]), cmp.Compare(a, b))
	})
	return out
}

func plural(pods int) string {
	if pods == 1 {
		return "Pod"
	}
	return "Pods"
}

// symptomOf returns the symptom of a reason with its message. All words of a cluster's go through here: it is one line
// that is not too long, and has no credentials of an address.
func symptomOf(reason, message string) Symptom {
	reason = excerpt.Line(excerpt.WithoutCredentials(reason))
	message = excerpt.Runes(excerpt.Line(excerpt.WithoutCredentials(message)), longestMessage)
	return Symptom{Reason: reason, Text: strings.TrimSuffix(reason+": "+message, ": ")}
}

// combined begins the message of an Event that stands for several, and says nothing of why.
const combined = "(combined from similar events): "

// FromEvent returns that of a Warning of a cluster.
func FromEvent(reason, message string) Symptom {
	return symptomOf(reason, strings.TrimPrefix(message, combined))
}

// finding is what keeps one Pod from being well; the zero value for nothing.
type finding struct {
	reason, message string
	// public is the message without what programs in containers wrote.
	public string
}

// found returns a finding that Kubernetes wrote all of.
func found(reason, message string) finding {
	return finding{reason: reason, message: message, public: message}
}

// ails returns what keeps one Pod from being well; the zero value for one
// that is, or is on its way.
func ails(pod *corev1.Pod) finding {
	if pod.DeletionTimestamp != nil {
		return finding{}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return found("FailedScheduling", c.Message)
		}
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range statuses {
		if f := stopped(&statuses[i]); f.reason != "" {
			return f
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return finding{reason: cmp.Or(pod.Status.Reason, "Failed"), message: pod.Status.Message}
	}
	for i := range statuses {
		if c := &statuses[i]; c.State.Running != nil && !c.Ready && pod.Status.Phase == corev1.PodRunning {
			return found("NotReady", fmt.Sprintf("container %s runs, and its readiness probe does not succeed", c.Name))
		}
	}
	return finding{}
}

// beforeStart are the reasons of containers that no program was started in: what is said of them is Kubernetes' own.
var beforeStart = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "CreateContainerConfigError"}

// stopped returns why a container does not run though it should.
func stopped(c *corev1.ContainerStatus) finding {
	ended := c.State.Terminated
	if wait := c.State.Waiting; wait != nil {
		switch wait.Reason {
		case "", "ContainerCreating", "PodInitializing":
			return finding{}
		case "CrashLoopBackOff":
			ended = c.LastTerminationState.Terminated
			if ended == nil {
				return found(wait.Reason, "container "+c.Name)
			}
		default:
			f := found(wait.Reason, cmp.Or(ofImage(wait.Message), "container "+c.Name))
			if !slices.Contains(beforeStart, wait.Reason) {
				f.public = "container " + c.Name
			}
			return f
		}
	}
	if ended == nil || ended.ExitCode == 0 && c.State.Waiting == nil {
		return finding{}
	}
	if ended.Reason == "OOMKilled" {
		return found(ended.Reason, fmt.Sprintf("container %s took more memory than its limit allows", c.Name))
	}
	f := found(cmp.Or(ended.Reason, "Error"), fmt.Sprintf("container %s ended with exit code %d", c.Name, ended.ExitCode))
	if ended.Message != "" {
		f.message += ": " + ended.Message
	}
	if c.State.Waiting != nil {
		f.reason = c.State.Waiting.Reason
	}
	return f
}
