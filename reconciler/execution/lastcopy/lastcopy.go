// Package lastcopy judges once more whether a Work that is being deleted may take its objects along, where its cluster
// was lost before that was done.
//
// In go the Work and its Cluster, and from the cache its binding and the binding's other Works; out comes why the
// objects stay for now. The package writes nothing and never calls a member.
package lastcopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Reason goes with the condition DeletionBlocked True: the cluster may have the only copy that serves.
const Reason = "LastCopy"

// Kept is why the objects of a Work stay for now.
type Kept struct {
	Title string   // of the template: "Deployment shop/web"
	In    []string // the clusters in which it is placed; it is healthy in none
}

func (k *Kept) Error() string {
	return fmt.Sprintf("%s is healthy in none of the clusters that it is placed in (%s): this cluster was lost before the copy here was removed, and keeps it until one is",
		k.Title, strings.Join(k.In, ", "))
}

// Is reports whether err says that a copy is kept as the last one.
func Is(err error) bool {
	var kept *Kept
	return errors.As(err, &kept)
}

// Again is the pause before it is judged once more.
const Again = 5 * time.Second

// Judge reads what Keeps needs.
type Judge struct {
	hub   client.Reader
	knows bool // whether bindings can be read here
}

// New returns a Judge that reads from the hub's cache. An agent cannot read bindings (knowsBindings is false): there it
// keeps nothing.
func New(hub client.Reader, knowsBindings bool) Judge { return Judge{hub, knowsBindings} }

// Keeps returns a *Kept if a Work that is being deleted has to keep its objects, and nil if it may remove them. It
// was decided that it may when other copies were healthy; since then its cluster has been lost, and they may be gone.
// What somebody has asked for is done all the same: that the template or its binding goes, that it is pruned there,
// or that it leaves before it starts elsewhere, or that the cluster leaves the fleet. A Work whose objects stay anyway keeps
// none.
//
// Other errors: the hub could not be read, so that nothing is known.
func (j Judge) Keeps(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	if !j.knows || stays(work) || !cluster.DeletionTimestamp.IsZero() || !interrupted(work, cluster) || !served(work) {
		return nil
	}
	b, found, err := j.binding(ctx, work)
	if err != nil || !found || slices.Contains(plan.PrunedFrom(b), cluster.Name) {
		return err
	}
	spec := plan.SpecOf(b)
	kept := &Kept{Title: title(spec)}
	for _, target := range plan.Targets(spec) {
		kept.In = append(kept.In, target.Name)
		healthy, err := j.healthy(ctx, b, target.Name)
		if err != nil || healthy {
			return err
		}
	}
	leavesFirst := slices.Contains(plan.LeaveFirst(spec), cluster.Name)
	if len(kept.In) == 0 || leavesFirst {
		return nil
	}
	return kept
}

// stays reports whether the objects stay in the cluster although the Work goes.
func stays(work *workv1alpha1.Work) bool {
	return ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || work.Annotations[workv1alpha2.WantedAgainAnnotation] == "true"
}

// noticed is how long it may take until a loss is known, which counts from its first sign: by default 30 s, and a probe.
const noticed = time.Minute

// interrupted reports whether the Work's deletion began when its cluster was not known to be lost yet, as it is by now, or whether
// that was found before.
func interrupted(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) bool {
	if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked); c != nil && c.Reason == Reason {
		return true
	}
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	return failover.Away(cluster) && work.DeletionTimestamp.Time.Before(ready.LastTransitionTime.Add(noticed))
}

// served reports whether the copy may have served somebody when its cluster was heard of last.
func served(work *workv1alpha1.Work) bool {
	before := *work
	before.DeletionTimestamp = nil
	return rollup.Serves(&before, true, false)
}

// binding returns the Work's binding; false if it is gone, or goes.
func (j Judge) binding(ctx context.Context, work *workv1alpha1.Work) (workv1alpha2.Binding, bool, error) {
	key, owned := bindings.OwnerOf(work)
	if !owned {
		return nil, false, nil
	}
	b := bindings.New(key.Namespace)
	err := j.hub.Get(ctx, key, b, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the binding %s: %w", key, err)
	}
	return b, b.GetDeletionTimestamp() == nil && b.GetLabels()[bindings.IDLabel(b)] == bindings.IDOf(work), nil
}

// healthy reports whether a cluster that is heard of has a healthy copy.
func (j Judge) healthy(ctx context.Context, b workv1alpha2.Binding, name string) (bool, error) {
	cluster := &clusterv1alpha1.Cluster{}
	switch err := j.hub.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the cluster %s: %w", name, err)
	}
	if _, silent := rollup.SilenceOf(cluster); silent {
		return false, nil
	}
	work, found, err := bindings.WorkIn(ctx, j.hub, b, name)
	return found && rollup.Ready(work), err
}

func title(spec *workv1alpha2.ResourceBindingSpec) string {
	ref := &spec.Resource
	return ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/")
}
