package dependency

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// reported is how many users of one object are notified of what is wrong with it.
const reported = 10

// conflict is what an Event about users that do not agree was about.
type conflict templatestore.Key

// reportUser reports a failure on the template and its binding, once.
func (r *Reconciler) reportUser(s *use, err error) {
	var known *loop.Error
	if s.binding == nil || !errors.As(err, &known) {
		r.failures.Forget(s.key)
		return
	}
	if r.failures.Record(s.key, known.Error()) {
		r.events.Event(bindings.TemplateRef(s.binding), corev1.EventTypeWarning, known.Reason, known.Error())
		r.events.Event(s.binding, corev1.EventTypeWarning, known.Reason, known.Error())
	}
}

// reportUsers informs users that something that they need cannot go along, and the
// attached binding that its users do not agree; both once.
func (r attach) reportUsers(ctx context.Context, s *attachment, err error) {
	var known *loop.Error
	switch {
	case !errors.As(err, &known):
		r.failures.Forget(s.key)
	case r.failures.Record(s.key, known.Error()):
		for i := range s.users[:min(len(s.users), reported)] {
			b, found, _ := r.reader.binding(ctx, client.ObjectKey{Namespace: s.users[i].Namespace, Name: s.users[i].Name})
			if found {
				r.events.Event(b, corev1.EventTypeWarning, known.Reason, known.Error())
			}
		}
	}
	switch text := s.decision.Conflict; {
	case text == "":
		r.failures.Forget(conflict(s.key))
	case err == nil && s.decision.Binding != nil && r.failures.Record(conflict(s.key), text):
		r.events.Event(s.decision.Binding, corev1.EventTypeWarning, workv1alpha2.EventReasonDependencyPolicyConflict, text)
	}
}
