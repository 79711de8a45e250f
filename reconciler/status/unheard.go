package status

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// unreadySince returns since when nothing is heard of a cluster; zero for one that is ready, or was never looked at.
func unreadySince(c *clusterv1alpha1.Cluster) time.Time {
	ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// counted returns the items as they count in the template's status: what clusters reported last of which nothing is
// heard any more is not known. The binding goes on to show it.
func (r *Reconciler) counted(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) ([]workv1alpha2.AggregatedStatusItem, error) {
	if !r.aggregator.KnowsSilence(template.GroupVersionKind()) {
		return items, nil
	}
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].ClusterName
	}
	silent, err := r.unheard.Silent(ctx, names)
	if err != nil {
		return nil, err
	}
	return r.aggregator.Unheard(template, items, silent), nil
}

// recount enqueues the bindings for whose templates it counts that a cluster fell silent, or is heard of again.
func (r *Reconciler) recount(ctx context.Context, cluster string) error {
	return bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		if slices.Contains(plan.Keeps(plan.SpecOf(b)), cluster) && r.aggregator.KnowsSilence(bindings.TemplateOf(b).GroupVersionKind) {
			r.inbox.add(client.ObjectKeyFromObject(b))
		}
	})
}
