package template

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/echo"
)

// writer makes, changes and deletes bindings.
type writer struct {
	hub  client.Writer
	echo *echo.Echo[workv1alpha2.Binding]
}

// sweep deletes the binding of a template that is gone, and ends the pass.
func (p writer) sweep(ctx context.Context, s *state) (loop.Next, error) {
	if s.template != nil {
		return loop.Next{}, nil
	}
	if s.binding == nil || p.echo.Leaving(s.binding) || bindings.TemplateOf(s.binding) != s.key {
		return loop.Next{Done: true}, nil
	}
	err := p.hub.Delete(ctx, s.binding, client.Preconditions{UID: ptr.To(s.binding.GetUID())})
	if err != nil && !bindings.IsStale(err) {
		return loop.Next{}, fmt.Errorf("delete the binding of a template that is gone: %w", err)
	}
	p.echo.Deleted(s.binding)
	log.FromContext(ctx).Info("deleted the binding of a template that is gone", "binding", s.binding.GetName())
	return loop.Next{Done: true}, nil
}

// run brings the binding to what is desired. Where it has changed meanwhile
// nothing is written: its event brings the template back here.
func (p writer) run(ctx context.Context, s *state) (loop.Next, error) {
	var err error
	if s.binding == nil {
		err = p.hub.Create(ctx, s.desired)
	} else {
		patch, some, patchErr := bindings.Patch(s.binding, s.desired)
		if patchErr != nil || !some {
			return loop.Next{}, patchErr
		}
		err = p.hub.Patch(ctx, s.desired, patch)
	}
	switch {
	case err != nil && (bindings.IsStale(err) || apierrors.IsAlreadyExists(err)):
		s.news = withoutPlacement(s.news)
		return loop.Next{Done: true}, nil
	case err != nil:
		s.news = withoutPlacement(s.news)
		return loop.Next{}, reported(fmt.Errorf("write the binding: %w", err))
	}
	p.echo.Wrote(s.desired)
	logger := log.FromContext(ctx).WithValues("binding", s.desired.GetName())
	if s.decision != nil {
		logger = logger.WithValues("clusters", placement.Text(s.decision.Clusters), "reason", s.decision.Record.Reason)
	}
	logger.Info("wrote a binding", "new", s.binding == nil)
	return loop.Next{}, nil
}

// withoutPlacement drops the news of a placement that was not written.
func withoutPlacement(all []news) []news {
	var out []news
	for _, n := range all {
		if n.reason != workv1alpha2.EventReasonScheduleBindingSucceed && n.reason != workv1alpha2.EventReasonScheduleBindingFailed {
			out = append(out, n)
		}
	}
	return out
}

// reported gives err a reason where users should hear of it.
func reported(err error) error {
	if bindings.IsRefused(err) {
		return loop.Retry(policyv1alpha1.EventReasonApplyPolicyFailed, err)
	}
	return err
}

// tellFailure tells of err on the template, once per failure.
func (r *Reconciler) tellFailure(s *state, err error) {
	var known *loop.Error
	if err == nil || s.template == nil || !errors.As(err, &known) {
		r.failures.Forget(s.key)
		return
	}
	if r.failures.New(s.key, known.Error()) {
		r.events.Event(s.template, corev1.EventTypeWarning, known.Reason, known.Error())
	}
}
