package setback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// Change is what the hub would do to an object in a cluster if it did not wait.
type Change struct {
	Cluster string `json:"cluster"`
	// Verb is "make", "change", "set back" or "remove", and "take over" for a cluster in
	// pull mode: its agent has not taken anything over, so that nobody has compared.
	Verb string `json:"verb"`
	// Object is its kind and name, "ConfigMap shop/web", or how many Works are taken
	// over.
	Object string `json:"object"`
}

// Plan is what the hub would do if it did not wait.
type Plan struct {
	// Changes are in the order of clusters and objects.
	Changes []Change `json:"changes"`
	// Idle are the clusters where there is nothing to do, sorted.
	Idle []string `json:"idle,omitempty"`
	// Unseen are those that are not ready, sorted: what would be done there may be more
	// than what is known.
	Unseen []string `json:"unseen,omitempty"`
	// Elsewhere are those in which another copy of the control plane acts, or may, sorted:
	// it is that one which knows what was done there.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Uncompared are those that are ready as far as the store says, which the hub has not
	// looked at since it found that it was set back, sorted: what would be done there is
	// not known yet.
	Uncompared []string `json:"uncompared,omitempty"`
}

// String returns the change as a line for people.
func (c Change) String() string { return fmt.Sprintf("%s %s in %s", c.Verb, c.Object, c.Cluster) }

// Waits returns why the hub waits; nil if it does not.
func Waits(ctx context.Context, hub client.Reader) (*hubclaim.Hold, error) {
	system := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, fmt.Errorf("read the history of the hub: %w", err)
	}
	return hubclaim.ParseHistory(system.Annotations[clusterv1alpha1.HistoryAnnotation]).Hold, nil
}

// Pending returns what the hub would do if it did not wait, given why it does. What it
// does not know of does not appear: it stays as it is.
func Pending(ctx context.Context, hub client.Reader, hold *hubclaim.Hold) (Plan, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return Plan{}, fmt.Errorf("list clusters: %w", err)
	}
	heard, err := reports(ctx, hub)
	if err != nil {
		return Plan{}, err
	}
	changes, err := pending(ctx, hub, hold, pulling(clusters.Items, hold))
	if err != nil {
		return Plan{}, err
	}
	return planOf(clusters.Items, changes, func(c *clusterv1alpha1.Cluster) bool { return compared(c, hold, heard[c.Name]) }), nil
}

// Elsewhere returns the clusters in which another copy of the hub acts, or may, sorted.
func Elsewhere(ctx context.Context, hub client.Reader) ([]string, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return planOf(clusters.Items, nil, func(*clusterv1alpha1.Cluster) bool { return true }).Elsewhere, nil
}

// reports are when the agents of clusters were last heard.
func reports(ctx context.Context, hub client.Reader) (map[string]time.Time, error) {
	var leases coordinationv1.LeaseList
	if err := hub.List(ctx, &leases, client.InNamespace(workv1alpha2.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("list the signs of life of agents: %w", err)
	}
	out := map[string]time.Time{}
	for i := range leases.Items {
		if at := leases.Items[i].Spec.RenewTime; at != nil {
			out[leases.Items[i].Name] = at.Time
		}
	}
	return out, nil
}

// compared reports whether the hub knows how far a cluster has seen it, since it waits: its
// loop has reported it on the Cluster, or the agent reports that with each sign of life.
func compared(c *clusterv1alpha1.Cluster, hold *hubclaim.Hold, heard time.Time) bool {
	if c.Spec.SyncMode == clusterv1alpha1.Pull {
		return slices.Contains(hold.Clusters, c.Name) || heard.After(hold.Since)
	}
	want := hold.Spares()
	if hold.Of(c.Name) != nil {
		want = hold.Describe()
	}
	reports := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionHeld)
	return reports != nil && reports.Message == want
}

// planOf sorts the changes, and the clusters that there are.
func planOf(clusters []clusterv1alpha1.Cluster, changes []Change, compared func(*clusterv1alpha1.Cluster) bool) Plan {
	out := Plan{Changes: changes}
	slices.SortFunc(out.Changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Object, b.Object), strings.Compare(a.Verb, b.Verb))
	})
	for i := range clusters {
		name := clusters[i].Name
		switch ready := meta.FindStatusCondition(clusters[i].Status.Conditions, clusterv1alpha1.ClusterConditionReady); {
		case ready != nil && (ready.Reason == clusterv1alpha1.ClusterElsewhereReason || ready.Reason == clusterv1alpha1.ClusterMovingReason):
			out.Elsewhere = append(out.Elsewhere, name)
		case ready == nil || ready.Status != metav1.ConditionTrue:
			out.Unseen = append(out.Unseen, name)
		case !compared(&clusters[i]):
			out.Uncompared = append(out.Uncompared, name)
		case !slices.ContainsFunc(changes, func(c Change) bool { return c.Cluster == name }):
			out.Idle = append(out.Idle, name)
		}
	}
	slices.Sort(out.Unseen)
	slices.Sort(out.Elsewhere)
	slices.Sort(out.Uncompared)
	slices.Sort(out.Idle)
	return out
}

// pending returns the changes in no order. It counts the Works of the clusters in pull
// mode in pulls.
func pending(ctx context.Context, hub client.Reader, hold *hubclaim.Hold, pulls map[string]int) ([]Change, error) {
	var out []Change
	list := &workv1alpha1.WorkList{}
	for {
		if err := hub.List(ctx, list, client.Limit(pageOf), client.Continue(list.Continue)); err != nil {
			return nil, fmt.Errorf("list works: %w", err)
		}
		for i := range list.Items {
			cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(list.Items[i].Namespace)
			if _, pull := pulls[cluster]; pull {
				pulls[cluster]++
			} else if ok && hold.Of(cluster) != nil { // others go on
				out = append(out, pendingOf(cluster, &list.Items[i])...)
			}
		}
		if list.Continue == "" {
			break
		}
	}
	for cluster, works := range pulls {
		if works > 0 {
			out = append(out, Change{Cluster: cluster, Verb: "take over", Object: fmt.Sprintf("%d Works", works)})
		}
	}
	return out, nil
}

// pulling returns the clusters in pull mode that wait, with no Works counted.
func pulling(clusters []clusterv1alpha1.Cluster, hold *hubclaim.Hold) map[string]int {
	out := map[string]int{}
	for i := range clusters {
		if clusters[i].Spec.SyncMode == clusterv1alpha1.Pull && hold.Of(clusters[i].Name) != nil {
			out[clusters[i].Name] = 0
		}
	}
	return out
}

// pageOf is how many Works are read at once.
const pageOf = 500

// reported finds what a Work says that would be done.
var reported = regexp.MustCompile(regexp.QuoteMeta(workv1alpha1.WorkHeldPrefix) + `(make|change|set back|remove) ([A-Za-z0-9]+ [^\s,\]]+)`)

func pendingOf(cluster string, work *workv1alpha1.Work) []Change {
	var out []Change
	if !work.DeletionTimestamp.IsZero() {
		for _, m := range work.Spec.Workload.Manifests {
			var object metav1.PartialObjectMetadata
			if json.Unmarshal(m.Raw, &object) == nil {
				name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
				out = append(out, Change{Cluster: cluster, Verb: "remove", Object: object.Kind + " " + name})
			}
		}
		return out
	}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil || applied.Status == metav1.ConditionTrue {
		return nil
	}
	for _, found := range reported.FindAllStringSubmatch(applied.Message, -1) {
		out = append(out, Change{Cluster: cluster, Verb: found[1], Object: found[2]})
	}
	return out
}
