package fetching

import (
	"regexp"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/excerpt"
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

// WorksAgain says that a source whose artifact has stayed the same is ready after a fault, and who vouches for the artifact where
// that is asked for.
func WorksAgain(of Object, a *meta.Artifact) string {
	text := "works again: the artifact of " + excerpt.ShortRevision(a.Revision) + " is the latest"
	if c := apimeta.FindStatusCondition(of.GetConditions(), sourcev1.SourceVerifiedCondition); c != nil && c.Status == metav1.ConditionTrue {
		text += ", and " + c.Message
	}
	return text
}
