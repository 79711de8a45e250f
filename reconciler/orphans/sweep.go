package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	policy "github.com/flotilla-io/flotilla/policies/orphans"
)

// orphan is an object without a Work.
type orphan struct {
	policy.Object
	kind schema.GroupVersionKind
	uid  types.UID
}

// sweep is what is in a cluster.
type sweep struct {
	// managed counts all objects that are managed.
	managed int
	// certain are the orphans that were so for a while, sorted. Waiting says that
	// there are others, and lent that a cluster whose Works are not watched for this one
	// asks for something that would be.
	certain       []orphan
	waiting, lent bool
}

func (s *sweep) found() []policy.Object {
	out := make([]policy.Object, len(s.certain))
	for i := range s.certain {
		out[i] = s.certain[i].Object
	}
	return out
}

// sweep finds the orphans among what the member's watches have seen.
func (r *Reconciler) sweep(ctx context.Context, s *state) (loop.Next, error) {
	cluster, standing, out := s.cluster.Name, s.member.Standing(), &s.swept
	ours := sync.OnceValues(func() (policy.Asked, error) { return asked(ctx, r.hub, cluster) })
	now := map[policy.ID]orphan{}
	var fault error
	members.Each(s.member, func(kind schema.GroupVersionKind, o *members.Observed) {
		found := orphan{Object: objectOf(kind, o), kind: kind, uid: o.UID}
		if out.managed++; !found.Suspect(cluster, standing) {
			return
		}
		// The cache is enough to let something live; before anything is deleted the server is asked.
		wanted, err := named(ctx, r.hub, r.opts.Own, cluster, &found.Object, client.UnsafeDisableDeepCopy)
		elsewhere := found.Elsewhere(cluster)
		if err == nil && !wanted && elsewhere {
			var here policy.Asked
			here, err = ours()
			wanted = here.Has(found.ID)
		}
		out.lent = out.lent || wanted && elsewhere
		fault = errors.Join(fault, err)
		if err == nil && !wanted {
			now[found.ID] = found
		}
	})
	if fault != nil { // half a sweep would forget since when the others are suspected
		return loop.Next{}, fault
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, kept, onPurpose := r.suspects[cluster], map[policy.ID]since{}, r.released.take(cluster)
	for id, o := range now {
		first := before[id]
		if first.uid != o.uid { // recreated under the same name: its grace period begins again
			first = since{uid: o.uid, at: r.opts.Clock.Now()}
		}
		if onPurpose[id] {
			first.at = time.Time{} // it was left on purpose, so that there is no grace period
		}
		kept[id] = first
		if r.opts.Clock.Since(first.at) >= r.opts.Grace {
			out.certain = append(out.certain, o)
		} else {
			out.waiting = true
		}
	}
	if r.suspects[cluster] = kept; len(kept) == 0 {
		delete(r.suspects, cluster)
	}
	slices.SortFunc(out.certain, func(a, b orphan) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	s.kept = r.opts.kept(s.cluster, out)
	return loop.Next{}, nil
}

func objectOf(kind schema.GroupVersionKind, o *members.Observed) policy.Object {
	return policy.Object{
		ID:   policy.ID{Kind: kind.GroupKind(), NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}},
		Work: o.Work, Owner: o.Owner, Managed: o.Managed, Applied: o.Owned != "", Leaving: !o.DeletionTimestamp.IsZero(),
	}
}

// named reports whether a Work that an object may mean asks for it. An agent sees the Works of
// its own cluster alone; own is that, empty where there is no agent.
func named(ctx context.Context, reader client.Reader, own, cluster string, o *policy.Object, opts ...client.GetOption) (bool, error) {
	for key := range o.Works(cluster) {
		if own != "" && key.Namespace != workv1alpha2.ExecutionNamespace(own) {
			continue
		}
		work := &workv1alpha1.Work{}
		err := reader.Get(ctx, key, work, opts...)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read work %s: %w", key, err)
		}
		if err == nil && policy.Named(work, o.ID) {
			return true, nil
		}
	}
	return false, nil
}

// asked returns what the Works of a cluster ask for, of whatever name.
func asked(ctx context.Context, hub client.Reader, cluster string) (policy.Asked, error) {
	var works workv1alpha1.WorkList
	if err := hub.List(ctx, &works, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the works of cluster %s: %w", cluster, err)
	}
	out := policy.Asked{}
	for i := range works.Items {
		out.Add(&works.Items[i])
	}
	return out, nil
}

// remove deletes orphans, if the cluster's policy says so, where live reads of the control plane and the member
// confirm them; what is gone is not reported any more.
func (r *Reconciler) remove(ctx context.Context, s *state) (loop.Next, error) {
	if s.cluster.Annotations[clusterv1alpha1.OrphansAnnotation] != clusterv1alpha1.OrphansDelete || s.kept != policy.KeptByPolicy {
		return loop.Next{}, nil
	}
	var left []orphan
	var faults []error
	for _, o := range s.swept.certain {
		if o.Leaving || !policy.ByPolicy(o.ID) || r.opts.Own != "" && o.Elsewhere(s.cluster.Name) { // an agent does not see who else asks for it
			left = append(left, o)
			continue
		}
		wanted, err := named(ctx, r.live, r.opts.Own, s.cluster.Name, &o.Object)
		if err == nil && !wanted {
			err = removeOne(ctx, s.cluster.Name, s.member, &o)
		}
		if err != nil {
			left, faults = append(left, o), append(faults, fmt.Errorf("remove %s, which no Work names: %w", o.ID, err))
		}
	}
	s.swept.certain, s.unremoved = left, errors.Join(faults...)
	return loop.Next{}, nil
}

// removeOne deletes an orphan, if the member's server has it as it was seen.
func removeOne(ctx context.Context, cluster string, member *members.Member, o *orphan) error {
	live, err := member.Get(ctx, o.kind, o.NamespacedName)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	is := objectOf(o.kind, members.MetadataOf(live))
	if is.Applied = ownership.Applies(live); live.GetUID() != o.uid || is.Work != o.Work || !is.Suspect(cluster, member.Standing()) {
		return nil
	}
	if _, err := member.Delete(ctx, o.kind, o.NamespacedName, o.uid, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return err
	}
	log.FromContext(ctx).Info("Removed an orphan", "cluster", cluster, "kind", o.kind.Kind, "namespace", o.Namespace, "name", o.Name, "work", o.Work)
	return nil
}

// report writes the conditions, and decides when to sweep again.
func (r *Reconciler) report(ctx context.Context, s *state) (loop.Next, error) {
	err := errors.Join(s.unremoved, r.write(ctx, s.cluster, s.swept.found(), s.kept))
	switch {
	case errors.Is(err, hub.ErrAway) || apierrors.IsConflict(err):
		return loop.Next{After: r.opts.Grace}, nil
	case err != nil:
		return loop.Next{}, err
	case s.swept.waiting:
		return loop.Next{After: r.opts.Grace}, nil
	case s.swept.lent:
		return loop.Next{After: seldom}, nil
	default:
		return loop.Next{}, nil
	}
}

// write writes the conditions, if they say something else than before.
func (r *Reconciler) write(ctx context.Context, c *clusterv1alpha1.Cluster, found []policy.Object, kept policy.Kept) error {
	if len(found) == 0 {
		r.count.DeleteLabelValues(c.Name)
	} else {
		r.count.WithLabelValues(c.Name).Set(float64(len(found)))
	}
	updated := c.DeepCopy()
	claims := sayClaims(&updated.Status.Conditions, found, r.opts.Clock.Now())
	changed := false
	if len(found) == 0 {
		changed = meta.RemoveStatusCondition(&updated.Status.Conditions, clusterv1alpha1.ClusterConditionOrphansFound)
	} else {
		changed = meta.SetStatusCondition(&updated.Status.Conditions, metav1.Condition{
			Type: clusterv1alpha1.ClusterConditionOrphansFound, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.OrphansFoundReason,
			Message: policy.Message(c.Name, found, kept), LastTransitionTime: metav1.NewTime(r.opts.Clock.Now()),
		})
	}
	if !changed && !claims {
		return nil
	}
	err := r.hub.Status().Patch(ctx, updated, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("tell of orphans in cluster %s: %w", c.Name, err)
	}
	return nil
}
