package status

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/statussize"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// gather reads the statuses of the binding's Works.
func (r *Reconciler) gather(ctx context.Context, s *state) (loop.Next, error) {
	for _, cluster := range plan.Keeps(plan.SpecOf(s.binding)) {
		work, found, err := bindings.WorkIn(ctx, r.hub, s.binding, cluster)
		if err != nil {
			return loop.Next{}, err
		}
		if found {
			s.works = append(s.works, work)
		}
	}
	r.overdue.recall(s.binding.BindingStatus().AggregatedStatus, s.works)
	s.items = rollup.Items(s.works, r.overdue.has)
	return loop.Next{}, nil
}

// unknownPause is when to try a template again that is not known yet: no
// event shows this loop that it is.
const unknownPause = 10 * time.Second

// mostAdded is how many bytes the statuses of a binding's clusters may have
// together to be added up: members may send any amount.
const mostAdded = 64 << 20

// total computes the template's status. There is none while the template is
// not known, and before its first cluster reports; once no cluster is to have it any
// more, it is that of no cluster at all. A rule that fails leaves it as it is; one
// that is slow may return a status that is outdated by a moment.
func (r *Reconciler) total(ctx context.Context, s *state) (loop.Next, error) {
	key := bindings.TemplateOf(s.binding)
	if ours(key.GroupKind()) || len(s.items) == 0 && !nowhere(s.binding) {
		return loop.Next{}, nil
	}
	template, presence, err := r.templates.Get(ctx, key)
	switch {
	case err != nil:
		return loop.Next{}, fmt.Errorf("read the template: %w", err)
	case presence == templatestore.Unknown:
		s.outcome.Pending = true
		return loop.Next{After: unknownPause}, nil
	case presence != templatestore.Present || !template.GetDeletionTimestamp().IsZero():
		return loop.Next{}, nil
	}
	judged := template
	if len(s.items) == 0 {
		judged = rollup.Nowhere(template, s.binding)
	}
	items, err := r.counted(ctx, judged, awaited(s.binding, s.items))
	if err != nil {
		return loop.Next{}, err
	}
	status, changed, err := r.add(judged, items)
	after, waits := kinds.Awaits(err)
	switch {
	case waits:
		s.outcome.Pending = true
	case err != nil:
		s.outcome.Fault = err.Error()
		return loop.Next{After: max(r.faults.When(s.key), interpreters.Costs(err))}, nil
	case !changed:
		r.faults.Forget(s.key)
	}
	if changed {
		s.adopt(template, status)
	}
	return loop.Next{After: after}, nil
}

// adopt sets the template's status, or as much of it as fits.
func (s *state) adopt(template *unstructured.Unstructured, status map[string]any) {
	status, left, fits := statussize.Shrink(template, status)
	s.outcome.Shortened = left
	if fits && (left == "" || !members.Same[any](template.Object["status"], status)) {
		s.template, s.total = template, status
	}
}

// awaited adds the clusters of the placement without a Work
// yet, as clusters that report nothing: a template is not rolled out before
// all of them have it. Rules are not passed drift, as with Karmada.
func awaited(b workv1alpha2.Binding, items []workv1alpha2.AggregatedStatusItem) []workv1alpha2.AggregatedStatusItem {
	out := slices.Clone(items)
	for i := range out {
		out[i].Drift = ""
	}
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		if !slices.ContainsFunc(items, func(item workv1alpha2.AggregatedStatusItem) bool { return item.ClusterName == target.Name }) {
			out = append(out, workv1alpha2.AggregatedStatusItem{ClusterName: target.Name})
		}
	}
	return out
}

func (r *Reconciler) add(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (map[string]any, bool, error) {
	all := 0
	for i := range items {
		if items[i].Status != nil {
			all += len(items[i].Status.Raw)
		}
	}
	if all > mostAdded {
		return nil, false, fmt.Errorf("aggregate status of %s %s: the clusters report more than %d bytes together, which are the most that are added up",
			template.GetKind(), template.GetName(), mostAdded)
	}
	return r.aggregator.AggregateStatus(template, items)
}

// nowhere reports whether the binding is to be in no cluster, and not only because
// it is not placed yet.
func nowhere(b workv1alpha2.Binding) bool {
	if len(plan.Keeps(plan.SpecOf(b))) > 0 {
		return false
	}
	_, decided := placement.RecordOf(b)
	return decided || len(b.BindingStatus().AggregatedStatus) > 0
}

// ours reports whether other loops of the hub write the status of a kind: there it
// shows what the hub does, not what members do.
func ours(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"},
		schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"},
		schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "Bucket"},
		schema.GroupKind{Group: "source.toolkit.fluxcd.io", Kind: "ExternalArtifact"},
		schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}:
		return true
	}
	return kind.Group == gitopsv1alpha1.GroupVersion.Group
}

// collect computes the binding's status.
func (r *Reconciler) collect(_ context.Context, s *state) (loop.Next, error) {
	s.status = rollup.Status(s.binding, rollup.Report{
		Works: s.works, Overdue: r.overdue.has, Scheduler: r.opts.SchedulerName, Total: s.outcome, Now: r.opts.Clock.Now(),
	})
	return loop.Next{}, nil
}
