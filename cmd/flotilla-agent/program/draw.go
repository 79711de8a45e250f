package program

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate/nodes"
	"github.com/flotilla-io/flotilla/policies/estimate/profile"
	"github.com/flotilla-io/flotilla/policies/estimate/waiting"
	"github.com/flotilla-io/flotilla/reconciler/cluster"
)

// draw returns the report to the hub about the nodes, and about the workloads whose pods find
// no node. hub is a cache with the Works: workloads that no Work carries are left out.
func draw(ctx context.Context, hub client.Reader, estimator cluster.Estimator, name string) (map[string]string, error) {
	var text []byte
	var waits []nodes.Waiting
	err := estimator.ReadNodes(name, func(x *nodes.Index) { text, waits = profile.Of(x).Encode(), nodes.WaitingIn(x) })
	if err != nil {
		return nil, err
	}
	works := &workv1alpha1.WorkList{}
	if len(waits) > 0 {
		if err := hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace(name)), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list Works: %w", err)
		}
	}
	return map[string]string{
		clusterv1alpha1.NodeProfileKey:        string(text),
		clusterv1alpha1.NodeProfileWaitingKey: string(waiting.Of(waits, carried(works)).Encode()),
	}, nil
}

// carried iterates over all objects that Works have applied in the member.
func carried(works *workv1alpha1.WorkList) iter.Seq[workv1alpha2.ObjectReference] {
	return func(yield func(workv1alpha2.ObjectReference) bool) {
		for i := range works.Items {
			for _, m := range works.Items[i].Status.ManifestStatuses {
				is := m.Identifier
				of := workv1alpha2.ObjectReference{
					APIVersion: schema.GroupVersion{Group: is.Group, Version: is.Version}.String(), Kind: is.Kind, Namespace: is.Namespace, Name: is.Name,
				}
				if !yield(of) {
					return
				}
			}
		}
	}
}
