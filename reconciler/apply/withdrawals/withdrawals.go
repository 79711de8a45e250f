// Package withdrawals finds the policies of a revision that would take what they carry out of clusters,
// and look as if nobody meant that.
//
// In go the changes of a revision and what the control plane has; out comes a refusal that names each such
// policy, with what would be lost where. What people let go by the policy's name is none. It reads
// Clusters and bindings, and writes nothing.
package withdrawals

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostNamed is how many policies a refusal names.
const mostNamed = 3

// Check errs if changes take objects out of clusters by what looks like a mistake, unless people let them
// go. hub reads from a cache with the index of bindings by claim.
func Check(ctx context.Context, hub client.Reader, changes []applier.Change, seen applier.Observed, may inventory.Allowance, revision string) error {
	var fleet []*clusterv1alpha1.Cluster
	var texts, allow []string
	for _, c := range changes {
		before, after := specOf(seen[inventory.IDOf(c.Desired)]), specOf(c.Desired)
		if !c.Writes() || before == nil || after == nil || may.Lets(inventory.IDOf(c.Desired)) {
			continue
		}
		if fleet == nil {
			var err error
			if fleet, err = clusters(ctx, hub); err != nil {
				return err
			}
		}
		lost := propagation.Withdrawn(before.PropagationSpec(), after.PropagationSpec(), fleet)
		if lost.Mistake == "" {
			continue
		}
		n, err := carried(ctx, hub, before, lost.Clusters)
		if err != nil {
			return err
		}
		if n > 0 {
			id := inventory.IDOf(c.Desired)
			texts = append(texts, fmt.Sprintf("%s: %s would take %s out of %s", lost.Mistake, inventory.Describe(id), objects(n), strings.Join(lost.Clusters, ", ")))
			allow = append(allow, inventory.NameOf(id))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	text := strings.Join(texts[:min(len(texts), mostNamed)], "; ")
	if more := len(texts) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more policies do so", more)
	}
	return fmt.Errorf("%s; revision %s is not applied: correct it, or allow it with the annotation %s: %q",
		text, revision, inventory.AllowPruneAnnotation, strings.Join(allow, ", "))
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// specOf returns the propagation policy that an object is; nil if it is none.
func specOf(obj *unstructured.Unstructured) policyv1alpha1.Policy {
	if obj == nil || obj.GroupVersionKind().Group != policyv1alpha1.GroupVersion.Group {
		return nil
	}
	var out policyv1alpha1.Policy
	switch obj.GetKind() {
	case policyv1alpha1.ResourceKindPropagationPolicy:
		out = &policyv1alpha1.PropagationPolicy{}
	case policyv1alpha1.ResourceKindClusterPropagationPolicy:
		out = &policyv1alpha1.ClusterPropagationPolicy{}
	default:
		return nil
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out) != nil {
		return nil // the server refuses it
	}
	return out
}

func clusters(ctx context.Context, hub client.Reader) ([]*clusterv1alpha1.Cluster, error) {
	var list clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	out := make([]*clusterv1alpha1.Cluster, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// carried counts what a policy carries to any of the clusters.
func carried(ctx context.Context, hub client.Reader, policy policyv1alpha1.Policy, clusters []string) (int, error) {
	id, n := propagation.RefOf(policy).ID, 0
	if id == "" {
		return 0, nil
	}
	err := bindings.Each(ctx, hub, func(b workv1alpha2.Binding) {
		if b.GetDeletionTimestamp() == nil && slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool { return slices.Contains(clusters, t.Name) }) {
			n++
		}
	}, client.MatchingFields{bindings.ByClaim: id})
	if err != nil {
		return 0, fmt.Errorf("count what policy %s carries: %w", propagation.RefOf(policy), err)
	}
	return n, nil
}
