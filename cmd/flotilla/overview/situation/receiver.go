package situation

import (
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
)

// Receiver adds a Receiver. It is shown only if it is not ready, or suspended.
func Receiver(s *Survey, r *notificationv1.Receiver) {
	state, ready := judge(r.Status.Conditions, r.Status.ObservedGeneration == r.Generation)
	if r.Spec.Suspend {
		s.asides.halt(notificationv1.ReceiverKind, r.Namespace, r.Name)
		return
	}
	says := remark.OfReceiver(r, ready)
	s.problem(Problem{State: state, Kind: notificationv1.ReceiverKind, Namespace: r.Namespace, Name: r.Name, Message: says.Message, Next: says.Next})
}
