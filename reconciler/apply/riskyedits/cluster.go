package riskyedits

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func isCluster(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind().GroupKind() == clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind()
}

// relabelled returns what the edit of a Cluster, together with the edits of other Clusters in the same revision, would
// remove from it.
func (c *check) relabelled(ctx context.Context, id inventory.ID) (finding, error) {
	edit := riskyedit.Edit{Before: c.fleet, After: make([]*clusterv1alpha1.Cluster, 0, len(c.fleet))}
	changes := false
	for _, there := range c.fleet {
		next := c.edited(there)
		edit.After = append(edit.After, next)
		changes = changes || there.Name == id.Name && !sameTraits(there, next)
	}
	if !changes {
		return finding{}, nil
	}
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	out, counted := finding{policy: id}, &summary{}
	err := bindings.Each(ctx, c.hub, func(b workv1alpha2.Binding) {
		was, is := c.carriers(b)
		if was == nil || is == nil {
			return
		}
		for _, t := range b.BindingSpec().Clusters {
			if t.Name != id.Name {
				continue
			}
			if mistake := edit.Takes(was.PropagationSpec(), is.PropagationSpec(), id.Name); mistake != "" {
				out.mistake = mistake
				counted.add(b, []string{t.Name})
			}
		}
	})
	if err != nil {
		return finding{}, fmt.Errorf("find what runs in the cluster %s: %w", id.Name, err)
	}
	out.does, out.clusters = "take "+counted.String()+" out of", counted.clusters
	return out, nil
}

// sameTraits reports whether two Clusters have the same labels and fields by which policies select clusters.
func sameTraits(a, b *clusterv1alpha1.Cluster) bool {
	return maps.Equal(a.Labels, b.Labels) && a.Spec.Provider == b.Spec.Provider && a.Spec.Region == b.Spec.Region && a.Spec.Zone == b.Spec.Zone &&
		apiequality.Semantic.DeepEqual(a.Spec.Zones, b.Spec.Zones)
}

// places are the fields of a Cluster's spec by which policies select it.
var places = []string{"provider", "region", "zone", "zones"}

// edited returns a Cluster as it will be with the revision: with the labels and places of the revision, and without
// those that came from Git before and are not in it any more.
func (c *check) edited(there *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	for _, change := range c.revision.Changes {
		if !isCluster(change.Desired) || change.Desired.GetName() != there.Name {
			continue
		}
		out, seen := there.DeepCopy(), c.revision.Seen[inventory.IDOf(change.Desired)]
		maps.DeleteFunc(out.Labels, func(key, _ string) bool { return seen != nil && fromGit(seen, "metadata", "labels", key) })
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		maps.Copy(out.Labels, change.Desired.GetLabels())
		for key := range inventory.OwnerLabels(client.ObjectKey{}) { // no policy selects clusters by these
			delete(out.Labels, key)
		}
		move(out, seen, change.Desired)
		return out
	}
	return there
}

// move sets the places of a Cluster to those of the revision.
func move(cluster *clusterv1alpha1.Cluster, seen, desired *unstructured.Unstructured) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&cluster.Spec)
	if err != nil {
		return
	}
	for _, field := range places {
		value, found, err := unstructured.NestedFieldCopy(desired.Object, "spec", field)
		switch {
		case err == nil && found:
			content[field] = value
		case seen != nil && fromGit(seen, "spec", field):
			delete(content, field)
		}
	}
	var spec clusterv1alpha1.ClusterSpec
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec) == nil { // else the dry run has refused it
		cluster.Spec = spec
	}
}

// fromGit reports whether the applier's field manager owns a field.
func fromGit(there *unstructured.Unstructured, path ...string) bool {
	for _, entry := range there.GetManagedFields() {
		if entry.Manager != applier.FieldManager || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		keys := make([]string, 0, len(path))
		for _, key := range path {
			keys = append(keys, "f:"+key)
		}
		if _, found, err := unstructured.NestedFieldNoCopy(fields, keys...); found && err == nil {
			return true
		}
	}
	return false
}
