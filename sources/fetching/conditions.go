package fetching

import (
	"regexp"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is a source with its conditions.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// Set sets a condition of a source, in memory.
func Set(of Object, now time.Time, kind string, status metav1.ConditionStatus, reason, message string) {
	all := of.GetConditions()
	apimeta.SetStatusCondition(&all, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: of.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
	of.SetConditions(all)
}

// Drop removes conditions of a source, in memory.
func Drop(of Object, kinds ...string) {
	all := of.GetConditions()
	for _, kind := range kinds {
		apimeta.RemoveStatusCondition(&all, kind)
	}
	of.SetConditions(all)
}

// connection matches the part of a network error that names the connection's
// local address, whose port is different each time.
var connection = regexp.MustCompile(`(\[[0-9a-fA-F:.]+\]|\d+\.\d+\.\d+\.\d+):\d+->`)

// Stable removes from a message what differs between equal faults, so that a
// lasting fault is written only once.
func Stable(message string) string { return connection.ReplaceAllString(message, "") }
