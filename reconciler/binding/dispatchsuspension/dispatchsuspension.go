// Package dispatchsuspension decides which Works of a cluster that is being left are not dispatched to it any more.
//
// In go the spec of a binding, its Works and which clusters are away; out comes spec.suspendDispatching on those Works of clusters with an
// eviction task that have not been applied yet: what a cluster did not get while it was away is not made there once it is back, as it runs
// elsewhere by then, and a Job would run twice. If the cluster is taken back, its Work is written as planned, which lifts it. The package changes nothing else.
package dispatchsuspension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Withholder suspends Works. All its fields have to be set.
type Withholder struct {
	Hub     client.Writer
	Written *writecache.Cache[*workv1alpha1.Work]
}

// From suspends what clusters that a binding is leaving, and that are away, have not applied. It returns the errors of all Works.
func (h Withholder) From(ctx context.Context, spec *workv1alpha2.ResourceBindingSpec, works []*workv1alpha1.Work, away func(cluster string) bool) error {
	var failed []error
	for _, w := range works {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		if isLeft(spec, cluster) && w.DeletionTimestamp == nil && !rollup.Applied(w) && !ptr.Deref(w.Spec.SuspendDispatching, false) && away(cluster) {
			failed = append(failed, h.suspend(ctx, w))
		}
	}
	return errors.Join(failed...)
}

// isLeft reports whether a template leaves a cluster, and is placed elsewhere by now.
func isLeft(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	placed := slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	return len(spec.Clusters) > 0 && !placed &&
		slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster })
}

func (h Withholder) suspend(ctx context.Context, w *workv1alpha1.Work) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": w.UID}, // this Work, and not a later one of its name
		"spec":     map[string]any{"suspendDispatching": true},
	})
	if err != nil {
		return fmt.Errorf("suspend the work %s: %w", client.ObjectKeyFromObject(w), err)
	}
	suspended := w.DeepCopy()
	switch err := h.Hub.Patch(ctx, suspended, client.RawPatch(types.MergePatchType, patch)); {
	case bindings.IsStale(err):
		return nil // it is gone
	case err != nil:
		return fmt.Errorf("suspend the work %s: %w", client.ObjectKeyFromObject(w), err)
	}
	h.Written.Wrote(suspended)
	log.FromContext(ctx).Info("A cluster that is being left did not get a work, and will not", "namespace", w.Namespace, "work", w.Name)
	return nil
}
