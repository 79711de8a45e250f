package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// write sends what changed: the binding's status, and then the template's, so that no
// template is ready before its binding says so. Each is written by this loop alone, so
// neither names a resource version. A template's status that the server refuses is a
// fault of the rule that made it, which the binding reports.
func (r *Reconciler) write(ctx context.Context, s *state) (next loop.Next, err error) {
	r.delays.sent(s)
	// A fault that the binding reports stays one until the server accepts the template's status.
	reported := s.total == nil || !faulty(s.binding.BindingStatus())
	if reported {
		if err = r.report(ctx, s); s.total == nil || err != nil && !refused(err) {
			return next, err // a write that failed is repeated before the template's
		}
	}
	var failed error
	if next.After, failed = r.recordWrite(s, r.writer.template(ctx, s.template, s.total)); next.After > 0 {
		s.changed, reported = true, false
		if _, err := r.collect(ctx, s); err != nil {
			return next, err
		}
	}
	if failed == nil && !reported {
		failed = r.report(ctx, s)
	}
	return next, errors.Join(err, failed)
}

// faulty reports whether a binding reports a fault of the rules for its kind.
func faulty(status *workv1alpha2.ResourceBindingStatus) bool {
	return meta.IsStatusConditionFalse(status.Conditions, workv1alpha2.Interpreted)
}

// report sends the binding's status, if it has changed.
func (r *Reconciler) report(ctx context.Context, s *state) error {
	if !s.changed || members.Same(*s.binding.BindingStatus(), s.status) {
		return nil
	}
	if err := r.writer.binding(ctx, s.binding, &s.status); err != nil {
		return fmt.Errorf("write the status of binding %s: %w", s.key, err)
	}
	return nil
}

// recordWrite records the result of the write of a template's status, and returns
// when to ask its rule again: a status that is refused is the rule's fault.
func (r *Reconciler) recordWrite(s *state, failed error) (time.Duration, error) {
	switch {
	case failed == nil:
		r.faults.Forget(s.key)
		return 0, nil
	case refused(failed):
		s.outcome.Fault = fmt.Sprintf("the status of %s %s is refused: %v", s.template.GetKind(), s.template.GetName(), failed)
		return r.faults.When(s.key), nil
	default:
		return 0, fmt.Errorf("write the status of %s %s: %w", s.template.GetKind(), client.ObjectKeyFromObject(s.template), failed)
	}
}

// refused reports whether the server will never accept what was sent.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// writer sends statuses of bindings and of templates, and remembers what it sent last.
type writer struct {
	hub       client.Client
	templates Templates
	wrote     *writecache.Cache[workv1alpha2.Binding]
}

// binding sends a binding's status. A patch is made of the status alone: the
// rest of the object is large, and has not changed.
func (w writer) binding(ctx context.Context, b workv1alpha2.Binding, status *workv1alpha2.ResourceBindingStatus) error {
	data, err := hub.ReplaceStatus(b.GetUID(), status)
	if err != nil {
		return err
	}
	updated := bindings.New(b.GetNamespace())
	updated.SetNamespace(b.GetNamespace())
	updated.SetName(b.GetName())
	if err := w.hub.Status().Patch(ctx, updated, client.RawPatch(types.JSONPatchType, data)); err != nil {
		if hub.Gone(err) {
			return nil // gone, or another one by now, whose own event comes
		}
		return err
	}
	w.wrote.Wrote(updated)
	return nil
}

// template sends what differs of a template's status.
func (w writer) template(ctx context.Context, template *unstructured.Unstructured, status map[string]any) error {
	data, err := client.MergeFrom(statusOnly(template, template.Object["status"])).Data(statusOnly(template, status))
	if err != nil {
		return err
	}
	updated := statusOnly(template, nil)
	updated.SetNamespace(template.GetNamespace())
	updated.SetName(template.GetName())
	if err := w.hub.Status().Patch(ctx, updated, client.RawPatch(types.MergePatchType, data)); err != nil {
		return client.IgnoreNotFound(err)
	}
	w.templates.Put(updated)
	return nil
}

// statusOnly returns an object of the template's kind that has a status at most.
func statusOnly(template *unstructured.Unstructured, status any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(template.GroupVersionKind())
	if status != nil {
		out.Object["status"] = status
	}
	return out
}
