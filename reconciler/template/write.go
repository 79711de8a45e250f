package template

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/decider"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// writer creates, changes and deletes bindings, and claims templates.
type writer struct {
	hub     client.Writer
	written *writecache.Cache[workv1alpha2.Binding]
	put     func(template *unstructured.Unstructured)
	gone    func(ctx context.Context, key templatestore.Key) (bool, error)
	// debounce returns how long to delay the write of a binding for the
	// template of that digest; 0 or less means to write now.
	debounce func(key templatestore.Key, digest string) time.Duration
	// withdraw drops the decision on a binding, which was not written.
	withdraw func(b workv1alpha2.Binding)
	clock    clock.PassiveClock
}

// sweep deletes the binding of a template that is gone, and ends the pass.
func (p writer) sweep(ctx context.Context, s *state) (loop.Next, error) {
	if s.template != nil {
		return loop.Next{}, nil
	}
	if s.binding == nil || p.written.Leaving(s.binding) || bindings.TemplateOf(s.binding) != s.key {
		return loop.Next{Done: true}, nil
	}
	if gone, err := p.gone(ctx, s.key); err != nil || !gone {
		return loop.Next{Done: true}, err // it exists after all: the watch will report it
	}
	err := p.hub.Delete(ctx, s.binding, client.Preconditions{UID: ptr.To(s.binding.GetUID())})
	if err != nil && !bindings.IsStale(err) {
		return loop.Next{}, fmt.Errorf("delete the binding of a template that is gone: %w", err)
	}
	p.written.Deleted(s.binding)
	log.FromContext(ctx).Info("deleted the binding of a template that is gone", "binding", s.binding.GetName())
	return loop.Next{Done: true}, nil
}

// run writes the claim and the binding concurrently.
func (p writer) run(ctx context.Context, s *state) (loop.Next, error) {
	if wait := p.delay(s); wait > 0 {
		s.delayed = true
		return loop.Next{After: wait}, nil
	}
	var group errgroup.Group
	var claimErr error
	group.Go(func() error {
		claimErr = p.claim(ctx, s)
		return nil // a failure of the claim does not hold up the binding
	})
	bound, err := p.bind(ctx, s)
	if s.decision != nil && !bound {
		p.withdraw(s.desired)
	}
	_ = group.Wait() // always nil, see above
	if n, some := s.carriedNow(bound); some {
		s.pending = append(s.pending, n)
	}
	if bound && s.decision != nil {
		s.pending = append(s.pending, decider.EventsOf(s.before(), *s.decision)...)
	}
	return loop.Next{}, errors.Join(claimErr, err)
}

// carriedNow returns what is reported about a policy that carries the template from now
// on. A claim that came with the template is reported with its binding.
func (s *state) carriedNow(bound bool) (decider.Event, bool) {
	if s.policy == nil {
		return decider.Event{}, false
	}
	who := propagation.RefOf(s.policy).String()
	out := decider.Event{Type: corev1.EventTypeNormal, Reason: policyv1alpha1.EventReasonApplyPolicySucceed}
	switch {
	case s.claimed && s.from != nil:
		out.Reason = policyv1alpha1.EventReasonPreemptPolicySucceed
		out.Message = "Policy " + who + " took the template from policy " + propagation.RefOf(s.from).String() + "."
	case s.claimed && s.activation.Waits:
		out.Message = "Claimed by policy " + who + ", which is Lazy: it takes effect with the next change of the template."
	case (bound && s.binding == nil) || (s.claimed && s.binding != nil):
		out.Message = "Carried by policy " + who + "."
	default:
		return decider.Event{}, false
	}
	return out, true
}

// delay returns how long the write is delayed. A write can be that only records
// which version of the template the binding is for: nothing depends on it while the Works
// are being sent to the clusters.
func (p writer) delay(s *state) time.Duration {
	if s.claim != nil || s.policy == nil || s.binding == nil || !propagation.SameDecision(s.binding, s.desired) {
		return 0
	}
	digest := s.desired.GetAnnotations()[propagation.DigestAnnotation]
	if s.binding.GetAnnotations()[propagation.DigestAnnotation] == digest {
		return 0
	}
	return p.debounce(s.key, digest)
}

// bind updates the binding to the desired one, and reports whether it wrote.
// If the binding has changed meanwhile it writes nothing: the event of the change enqueues the
// template.
func (p writer) bind(ctx context.Context, s *state) (bool, error) {
	if s.desired == nil {
		return false, nil
	}
	some, err := p.send(ctx, s)
	if p.overQuota(s, err) {
		some, err = p.send(ctx, s)
	}
	switch {
	case err == nil && !some:
		return false, nil
	case err != nil && (bindings.IsStale(err) || apierrors.IsAlreadyExists(err)):
		return false, nil
	case err != nil:
		err = fmt.Errorf("write the binding: %w", errors.Join(err, p.reportRefused(ctx, s, err)))
		return false, reported(policyv1alpha1.EventReasonApplyPolicyFailed, err)
	}
	p.written.Wrote(s.desired)
	logger := log.FromContext(ctx).WithValues("binding", s.desired.GetName())
	if s.decision != nil {
		logger = logger.WithValues("clusters", placement.Text(s.decision.Clusters), "reason", s.decision.Record.Reason)
	}
	logger.Info("wrote a binding", "new", s.binding == nil)
	return true, nil
}

// send creates the binding, or patches what has changed, and reports whether there
// was anything to send.
func (p writer) send(ctx context.Context, s *state) (bool, error) {
	if s.binding == nil {
		return true, p.hub.Create(ctx, s.desired)
	}
	patch, some, err := bindings.Patch(s.binding, s.desired)
	if err != nil || !some {
		return false, err
	}
	return true, p.hub.Patch(ctx, s.desired, patch)
}

// before returns the binding as it was, an empty one if there was none.
func (s *state) before() workv1alpha2.Binding {
	if s.binding != nil {
		return s.binding
	}
	return bindings.New(s.key.Namespace)
}

// reported returns err with the reason, if it is one that users should see.
func reported(reason string, err error) error {
	switch {
	case apierrors.ReasonForError(err) == workv1alpha2.BindingReasonQuotaExceeded:
		return loop.Waiting(reason, quotaPause, err)
	case bindings.IsRefused(err):
		return loop.Retry(reason, err)
	default:
		return err
	}
}

// reportFailure emits an event about err on the template, once per failure, and returns the
// message; empty if err is not for users.
func (r *Reconciler) reportFailure(s *state, err error) string {
	var known *loop.Error
	if err == nil || s.template == nil || !errors.As(err, &known) {
		r.failures.Forget(s.key)
		return ""
	}
	if r.failures.Record(s.key, known.Error()) {
		r.events.Event(s.template, corev1.EventTypeWarning, known.Reason, known.Error())
	}
	return known.Error()
}

// about returns the policy that a pass was for; empty for none.
func (s *state) about() propagation.PolicyRef {
	if s.policy == nil {
		return propagation.PolicyRef{}
	}
	return propagation.RefOf(s.policy)
}
