package draining

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// Plan returns what a drain of a cluster would move if it began now, and what it could not move.
func Plan(ctx context.Context, hub client.Reader, members Members, cluster string, now time.Time) (Report, error) {
	in := drain.Input{Cluster: cluster, Now: now, Scheduling: placement.Options{Failover: failover.Rules{State: true}}}
	err := listing.Each(ctx, hub, &clusterv1alpha1.ClusterList{}, func(c *clusterv1alpha1.Cluster) { in.Clusters = append(in.Clusters, c) })()
	if err != nil {
		return Report{}, err
	}
	if err := each(ctx, hub, func(b workv1alpha2.Binding) { in.Bindings = append(in.Bindings, b) }); err != nil {
		return Report{}, err
	}
	out := Report{Cluster: cluster, DryRun: true}
	asked := drain.Asks(in)
	doubts, _ := see(ctx, hub, members, in.Clusters, slices.DeleteFunc(drain.Doubts(in), func(name string) bool { return slices.Contains(asked, name) }))
	in.Seen, out.Notes = see(ctx, hub, members, in.Clusters, asked)
	maps.Copy(in.Seen, doubts)
	err = listing.Each(ctx, hub, &policyv1alpha1.FederatedResourceQuotaList{}, func(q *policyv1alpha1.FederatedResourceQuota) { in.Quotas = append(in.Quotas, q) })()
	switch {
	case apierrors.IsForbidden(err):
		out.Notes = append(out.Notes, "quotas count in the drain, and not here: "+excerpt.Line(err.Error()))
	case err != nil:
		return Report{}, err
	}
	out.Rows = drain.Plan(in)
	have := volumesOf(ctx, hub, out.Rows)
	for i := range out.Rows {
		have.add(&out.Rows[i], cluster)
	}
	out.Notes = append(out.Notes, have.notes...)
	return out, nil
}

// each calls f with every binding.
func each(ctx context.Context, hub client.Reader, f func(workv1alpha2.Binding)) error {
	return errors.Join(
		listing.Each(ctx, hub, &workv1alpha2.ResourceBindingList{}, func(b *workv1alpha2.ResourceBinding) { f(b) })(),
		listing.Each(ctx, hub, &workv1alpha2.ClusterResourceBindingList{}, func(b *workv1alpha2.ClusterResourceBinding) { f(b) })(),
	)
}

// read returns the cluster and the state of each template in the drain, sorted: those that before has are among them,
// whatever has become of them.
func read(ctx context.Context, hub client.Reader, name string, now time.Time, before []drain.Row) (*clusterv1alpha1.Cluster, []drain.Row, error) {
	cluster, err := Cluster(ctx, hub, name)
	if err != nil {
		return nil, nil, err
	}
	counted := map[string]bool{}
	for i := range before {
		counted[before[i].Key()] = true
	}
	var rows []drain.Row
	gone := map[string]int{} // rows of what was moved off it, by the binding
	err = each(ctx, hub, func(b workv1alpha2.Binding) {
		row, concerned := drain.RowOf(b, cluster, now)
		if !concerned && !counted[row.Key()] {
			return
		}
		if id := idOf(b); row.State == drain.Left && id != "" && !drain.Required(b, name) {
			gone[id] = len(rows)
		}
		rows = append(rows, row)
	})
	if err == nil && len(gone) > 0 {
		err = remaining(ctx, hub, name, func(work *workv1alpha1.Work) {
			if at, moved := gone[idOf(work)]; moved {
				rows[at].Remains(work)
			}
		}, gone)
	}
	if err == nil && slices.ContainsFunc(rows, func(r drain.Row) bool { return r.State == drain.Leaves }) {
		err = doubt(ctx, hub, rows)
	}
	return cluster, drain.Together(before, rows), err
}

// doubt adds which clusters are not ready that rows leave for; none where the caller may not list clusters.
func doubt(ctx context.Context, hub client.Reader, rows []drain.Row) error {
	silent := rollup.Silences{}
	err := listing.Each(ctx, hub, &clusterv1alpha1.ClusterList{}, func(c *clusterv1alpha1.Cluster) { silent.Add(c) })()
	if apierrors.IsForbidden(err) {
		return nil
	}
	for i := range rows {
		rows[i].Doubt(silent)
	}
	return err
}

// idOf returns the permanent id of a binding, or of the binding of a Work; empty if there is none.
func idOf(obj client.Object) string {
	labels := obj.GetLabels()
	return cmp.Or(labels[workv1alpha2.ResourceBindingPermanentIDLabel], labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel])
}

// remaining calls f with each Work that a cluster has of the bindings, and with none that the user may not read.
func remaining(ctx context.Context, hub client.Reader, cluster string, f func(*workv1alpha1.Work), of map[string]int) error {
	list := &metav1.PartialObjectMetadataList{} // others may be large
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: workv1alpha1.GroupName, Version: "v1alpha1", Kind: workv1alpha1.ResourceKindWork + "List"})
	var keys []client.ObjectKey
	err := listing.Each(ctx, hub, list, func(m *metav1.PartialObjectMetadata) {
		if _, moved := of[idOf(m)]; moved {
			keys = append(keys, client.ObjectKeyFromObject(m))
		}
	}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))()
	for _, key := range keys {
		work := &workv1alpha1.Work{}
		if err := hub.Get(ctx, key, work); err == nil {
			f(work)
		} else if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return err
		}
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// Cluster reads a cluster. The error for an unknown name suggests similar ones.
func Cluster(ctx context.Context, hub client.Reader, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, fleet.NoCluster(ctx, hub, name)
	}
	return cluster, err
}

// Drainable returns an error if nothing would be moved off a cluster because it is not ready or is leaving.
func Drainable(c *clusterv1alpha1.Cluster) error {
	switch {
	case c.DeletionTimestamp != nil:
		return fmt.Errorf("cluster %s leaves the fleet: what it runs goes with it", c.Name)
	case !failover.Drainable(c):
		return fmt.Errorf("cluster %s is not ready, and only one that is well can be drained: flotilla status says what is wrong; what a lost one ran is moved by flotillad serve --failover=on", c.Name)
	}
	return nil
}
