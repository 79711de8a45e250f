package status

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/store"
)

// collect works out the binding's status from what its Works say now.
func (r *Reconciler) collect(ctx context.Context, s *state) (loop.Next, error) {
	works, err := r.works(ctx, s.binding)
	if err != nil {
		return loop.Next{}, err
	}
	s.status = rollup.Status(s.binding, works, r.options.SchedulerName, r.options.Clock.Now())
	return loop.Next{}, nil
}

// works reads the Works of a binding, one per cluster that is to hold one.
func (r *Reconciler) works(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	ref := &b.BindingSpec().Resource
	name, label := workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace), bindings.IDLabel(b)
	var out []*workv1alpha1.Work
	for _, cluster := range plan.Keeps(b.BindingSpec()) {
		work := &workv1alpha1.Work{}
		err := r.hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}, work, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the work for cluster %s: %w", cluster, err)
		}
		if work.Labels[label] == b.GetLabels()[label] {
			out = append(out, work)
		}
	}
	return out, nil
}

// unknownPause is when to look again at a template that is not known yet: no
// event tells this loop that it is.
const unknownPause = 10 * time.Second

// total works out the template's status. While the template is not known, or no
// cluster has reported on it, there is none.
func (r *Reconciler) total(ctx context.Context, s *state) (loop.Next, error) {
	template, presence, err := r.templates.Get(ctx, bindings.TemplateOf(s.binding))
	if err != nil {
		return loop.Next{}, fmt.Errorf("read the template: %w", err)
	}
	switch {
	case len(s.status.AggregatedStatus) == 0:
		return loop.Next{}, nil
	case presence == store.Unknown:
		return loop.Next{After: unknownPause}, nil
	case presence != store.Present || !template.GetDeletionTimestamp().IsZero():
		return loop.Next{}, nil
	}
	status, changed, err := r.aggregator.AggregateStatus(template, s.status.AggregatedStatus)
	if err != nil {
		return loop.Next{}, fmt.Errorf("add up the status of %s %s: %w", template.GetKind(), client.ObjectKeyFromObject(template), err)
	}
	if changed {
		s.template, s.total = template, status
	}
	return loop.Next{}, nil
}

// hold leaves what has not changed alone, and holds back what can wait for more.
func (r *Reconciler) hold(_ context.Context, s *state) (loop.Next, error) {
	was := s.binding.BindingStatus()
	if s.total == nil && members.Same(*was, s.status) {
		r.clear(s.key)
		return loop.Next{Done: true}, nil
	}
	wait := r.partial.Hold(s.key, form(s))
	if urgent(was, &s.status) {
		wait = min(wait, r.urgent.Hold(s.key, ""))
	}
	return loop.Next{Done: wait > 0, After: max(wait, 0)}, nil
}

// form tells one change from another by what was reported.
func form(s *state) string {
	var out bytes.Buffer
	for i := range s.status.AggregatedStatus {
		item := &s.status.AggregatedStatus[i]
		_, _ = fmt.Fprintf(&out, "%s %t %s ", item.ClusterName, item.Applied, item.Health)
		if item.Status != nil {
			_, _ = out.Write(item.Status.Raw)
		}
	}
	return members.Hash(out.Bytes())
}

// urgent says whether somebody waits for the change: it completes something, or
// it is bad news.
func urgent(was, is *workv1alpha2.ResourceBindingStatus) bool {
	if complete(was) != complete(is) ||
		healthy(was) != healthy(is) ||
		conditionStatus(is, workv1alpha2.Scheduled) == metav1.ConditionFalse && conditionStatus(was, workv1alpha2.Scheduled) != metav1.ConditionFalse {
		return true
	}
	return slices.ContainsFunc(is.AggregatedStatus, func(now workv1alpha2.AggregatedStatusItem) bool {
		at := slices.IndexFunc(was.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == now.ClusterName })
		return at >= 0 && (was.AggregatedStatus[at].Applied && !now.Applied ||
			was.AggregatedStatus[at].Health == workv1alpha2.ResourceHealthy && now.Health != workv1alpha2.ResourceHealthy)
	})
}

func conditionStatus(status *workv1alpha2.ResourceBindingStatus, kind string) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// complete says whether every cluster of the placement has the manifest.
func complete(status *workv1alpha2.ResourceBindingStatus) bool {
	return conditionStatus(status, workv1alpha2.FullyApplied) == metav1.ConditionTrue
}

// healthy says whether every cluster of a complete binding reports health.
func healthy(status *workv1alpha2.ResourceBindingStatus) bool {
	return complete(status) && !slices.ContainsFunc(status.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.Health != workv1alpha2.ResourceHealthy
	})
}

// write sends what changed: the binding's status, and the template's. Each is
// written by this loop alone, so neither names a resource version.
func (r *Reconciler) write(ctx context.Context, s *state) (loop.Next, error) {
	r.clear(s.key)
	if was := s.binding.BindingStatus(); !members.Same(*was, s.status) {
		if err := r.writeBinding(ctx, s.key, was, &s.status); err != nil {
			return loop.Next{}, fmt.Errorf("write the status of binding %s: %w", s.key, err)
		}
	}
	if s.total == nil {
		return loop.Next{}, nil
	}
	if err := r.writeTemplate(ctx, s.template, s.total); err != nil {
		return loop.Next{}, fmt.Errorf("write the status of %s %s: %w", s.template.GetKind(), client.ObjectKeyFromObject(s.template), err)
	}
	return loop.Next{}, nil
}

// writeBinding sends what differs of a binding's status. Patches are made of
// statuses alone: the objects around them are large, and are no news.
func (r *Reconciler) writeBinding(ctx context.Context, key client.ObjectKey, was, is *workv1alpha2.ResourceBindingStatus) error {
	before, after := bindings.New(key.Namespace), bindings.New(key.Namespace)
	*before.BindingStatus(), *after.BindingStatus() = *was, *is
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return err
	}
	updated := bindings.New(key.Namespace)
	updated.SetNamespace(key.Namespace)
	updated.SetName(key.Name)
	if err := r.hub.Status().Patch(ctx, updated, client.RawPatch(types.MergePatchType, data)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.wrote.Wrote(updated)
	return nil
}

// writeTemplate sends what differs of a template's status.
func (r *Reconciler) writeTemplate(ctx context.Context, template *unstructured.Unstructured, status map[string]any) error {
	data, err := client.MergeFrom(statusOnly(template, template.Object["status"])).Data(statusOnly(template, status))
	if err != nil {
		return err
	}
	updated := statusOnly(template, nil)
	updated.SetNamespace(template.GetNamespace())
	updated.SetName(template.GetName())
	if err := r.hub.Status().Patch(ctx, updated, client.RawPatch(types.MergePatchType, data)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.templates.Put(updated)
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
