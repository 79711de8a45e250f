package join

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// mostPlaced is how many of the templates that keep a cluster in the fleet are
// named.
const mostPlaced = 3

// placedIn names the templates that are still placed in a cluster, which leaves only
// when there are none, and why; empty where there are none.
func placedIn(ctx context.Context, hub client.Reader, cluster string) (string, error) {
	var spaced workv1alpha2.ResourceBindingList
	var wide workv1alpha2.ClusterResourceBindingList
	if err := hub.List(ctx, &spaced); err != nil {
		return "", fmt.Errorf("list bindings: %w", err)
	}
	if err := hub.List(ctx, &wide); err != nil {
		return "", fmt.Errorf("list cluster bindings: %w", err)
	}
	var found []string
	note := func(b workv1alpha2.Binding) {
		if slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }) {
			of := b.BindingSpec().Resource
			found = append(found, fmt.Sprintf("%s %s (%s)", of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), whyPlaced(b)))
		}
	}
	for i := range spaced.Items {
		note(&spaced.Items[i])
	}
	for i := range wide.Items {
		note(&wide.Items[i])
	}
	slices.Sort(found)
	if more := len(found) - mostPlaced; more > 0 {
		found = append(found[:mostPlaced], fmt.Sprintf("%d more", more))
	}
	return strings.Join(found, ", "), nil
}

// whyHeld returns why a template is still placed in a cluster that leaves.
func whyPlaced(b workv1alpha2.Binding) string {
	scheduler := cmp.Or(b.BindingSpec().SchedulerName, policyv1alpha1.DefaultSchedulerName)
	record, known := placement.RecordOf(b)
	switch {
	case b.GetDeletionTimestamp() != nil:
		return "which is being deleted"
	case scheduler != policyv1alpha1.DefaultSchedulerName:
		return "which the scheduler " + scheduler + " is to place elsewhere"
	case known && !record.Succeeded():
		return record.Message
	default:
		return "which is not placed anew yet"
	}
}
