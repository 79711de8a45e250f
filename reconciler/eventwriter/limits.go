package eventwriter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// The limits of Events of one reason on one object. The first are those of client-go, which counts all reasons of an
// object as one: there, what tells of progress takes the place of what tells that something went.
const (
	mostAtOnce = 25
	perSecond  = 1. / 300
	// Of lasting reasons more are written, as nothing else says later what they say; a flood still has an end.
	mostLasting      = 100
	lastingPerSecond = 1. / 30
)

// newCorrelator returns what counts up Events that come again, and leaves out those of a flood.
func newCorrelator(clk clock.PassiveClock) *record.EventCorrelator {
	return record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		Clock: clk, BurstSize: mostAtOnce, QPS: perSecond, SpamKeyFunc: byReason,
	})
}

// newLasting returns the same for lasting reasons: no message is replaced by a later one.
func newLasting(clk clock.PassiveClock) *record.EventCorrelator {
	return record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
		Clock: clk, BurstSize: mostLasting, QPS: lastingPerSecond, SpamKeyFunc: byReason,
		KeyFunc: func(event *corev1.Event) (aggregate, local string) {
			return byReason(event) + "\n" + event.Message, event.Message
		},
	})
}

// byReason groups Events of one reason on one object.
func byReason(event *corev1.Event) string {
	of := event.InvolvedObject
	return strings.Join([]string{of.APIVersion, of.Kind, of.Namespace, of.Name, string(of.UID), event.Type, event.Reason}, "\n")
}
