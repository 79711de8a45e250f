package withdrawals

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/withdrawal"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func isCluster(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind()
}

// relabelled is what an edit of a Cluster takes out of it.
func (c *check) relabelled(ctx context.Context, id inventory.ID) (finding, error) {
	var before, after *clusterv1alpha1.Cluster
	edited := make([]*clusterv1alpha1.Cluster, 0, len(c.fleet))
	for _, there := range c.fleet {
		next := c.edited(there)
		if edited = append(edited, next); there.Name == id.Name {
			before, after = there, next
		}
	}
	if before == nil {
		return finding{}, nil // it joins
	}
	mistake := withdrawal.Cluster(before, after, edited)
	if mistake == "" {
		return finding{}, nil
	}
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	counted := &tally{}
	err := bindings.Each(ctx, c.hub, func(b workv1alpha2.Binding) {
		was, is := c.carriers(b)
		if was == nil || is == nil || !withdrawal.Leaves(was.PropagationSpec(), is.PropagationSpec(), before, after) {
			return
		}
		for _, t := range b.BindingSpec().Clusters {
			if t.Name == id.Name {
				counted.add([]string{t.Name})
			}
		}
	})
	if err != nil {
		return finding{}, fmt.Errorf("find what runs in the cluster %s: %w", id.Name, err)
	}
	return finding{policy: id, mistake: mistake, does: "take " + counted.String() + " out of", clusters: counted.clusters}, nil
}

// edited is a Cluster as the revision leaves it: with its labels, and without those that Git gave it before.
func (c *check) edited(there *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	for _, change := range c.revision.Changes {
		if !isCluster(change.Desired) || change.Desired.GetName() != there.Name {
			continue
		}
		out, seen := there.DeepCopy(), c.revision.Seen[inventory.IDOf(change.Desired)]
		maps.DeleteFunc(out.Labels, func(key, _ string) bool { return seen != nil && fromGit(seen, key) })
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		maps.Copy(out.Labels, change.Desired.GetLabels())
		for key := range inventory.OwnerLabels(client.ObjectKey{}) { // these say nothing of the cluster
			delete(out.Labels, key)
		}
		return out
	}
	return there
}

// fromGit reports whether a label was written by an apply.
func fromGit(there *unstructured.Unstructured, label string) bool {
	for _, entry := range there.GetManagedFields() {
		if entry.Manager == applier.FieldManager && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+label+`":`)) {
			return true
		}
	}
	return false
}
