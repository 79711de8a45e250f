package binding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/binding/heard"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/undelete"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// noSpace is the pause before the next try while the execution namespace of a cluster does not exist.
const noSpace = 2 * time.Second

// shareGoes is the pause before the next try while the Work of a quota's share has the name of one that is planned.
const shareGoes = time.Second

// writer creates, changes and deletes Works.
type writer struct {
	hub       client.Writer
	claims    releaser
	recalls   undelete.Recaller
	events    loop.Recorder
	find      func(ctx context.Context, key client.ObjectKey) (*workv1alpha1.Work, bool, error)
	cluster   func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, bool, error)
	written   *writecache.Cache[*workv1alpha1.Work]
	own       *writecache.Cache[workv1alpha2.Binding]
	freshness *heard.Freshness
	there     *heard.Presence
	asks      func(ctx context.Context, cluster string, work *workv1alpha1.Work) (known bool, err error)
	succeed   func(ctx context.Context, work, former *workv1alpha1.Work) error
	ends      func(cluster *clusterv1alpha1.Cluster) bool
	clock     clock.PassiveClock
	parallel  int
	// evictions configures how failed clusters are evicted.
	evictions Evictions
}

// finalize removes all Works of a binding that is gone or being deleted, removes its finalizer,
// and ends the pass.
func (p writer) finalize(ctx context.Context, s *state) (loop.Next, error) {
	if s.binding != nil && s.binding.GetDeletionTimestamp() == nil {
		return loop.Next{}, nil
	}
	p.there.End(s.key)
	if _, err := p.recalls.Decide(ctx, s.key, ""); err != nil {
		return loop.Next{}, err
	}
	beside, wait, err := p.beside(ctx, s)
	if err != nil {
		return loop.Next{}, err
	}
	ours := slices.DeleteFunc(slices.Clone(s.works), func(w *workv1alpha1.Work) bool { return slices.Contains(beside, w) })
	if len(beside) == 0 {
		wait = 0
	}
	err = p.remove(ctx, ours)
	if after := p.claims.awaited(ours); after > 0 && (wait == 0 || after < wait) {
		wait = after
	}
	if err != nil || s.binding == nil || len(beside) > 0 {
		return loop.Next{Done: true, After: wait}, err
	}
	patch, has := bindings.WithoutFinalizer(s.binding, bindings.Finalizer(s.binding))
	if !has || p.own.Ended(s.binding) {
		return loop.Next{Done: true, After: wait}, nil
	}
	switch err := p.hub.Patch(ctx, s.binding.DeepCopyObject().(client.Object), patch); {
	case err == nil:
		p.own.Deleted(s.binding)
	case !bindings.IsStale(err):
		return loop.Next{}, fmt.Errorf("let the binding go: %w", err)
	}
	return loop.Next{Done: true, After: wait}, nil
}

// pruneClusters removes the Works in clusters from which the template was pruned before the others. It comes before
// rendering, so that a template that cannot be rendered is removed there all the same.
func (p writer) pruneClusters(ctx context.Context, s *state) (loop.Next, error) {
	left := worksIn(s.works, plan.PrunedFrom(s.binding)...)
	if len(left) == 0 {
		return loop.Next{}, nil
	}
	keeps := plan.Keeps(plan.SpecOf(s.binding))
	return loop.Next{}, p.remove(ctx, slices.DeleteFunc(left, func(w *workv1alpha1.Work) bool {
		cluster, _ := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		return slices.Contains(keeps, cluster)
	}))
}

// dispatch writes the Works that differ from their plans. While a cluster that
// has to be left before anything starts elsewhere still has a Work, it creates
// none: the deletion of that Work enqueues the binding again.
func (p writer) dispatch(ctx context.Context, s *state) (loop.Next, error) {
	if err := leaveFirst(ctx, p, s); err != nil {
		return loop.Next{}, err
	}
	outcomes := make([]outcome, len(s.plans))
	var group errgroup.Group
	group.SetLimit(p.parallel)
	for i, planned := range s.plans {
		group.Go(func() error {
			outcomes[i] = p.bring(ctx, s, planned)
			return nil // one cluster's fault stops no other
		})
	}
	_ = group.Wait() // always nil, see above
	s.ready = map[string]bool{}
	for i, o := range outcomes {
		if o.stands {
			s.stand++
		}
		if o.ready && !slices.Contains(s.grow, s.plans[i].Cluster) {
			s.ready[s.plans[i].Cluster] = true
		}
		if o.err != nil {
			s.failed = append(s.failed, fault{s.plans[i].Cluster, o.err})
		}
		if o.after > 0 && (s.awaits == 0 || o.after < s.awaits) {
			s.awaits = o.after
		}
	}
	return loop.Next{After: s.awaits}, nil
}

// outcome is the result of one cluster's plan.
type outcome struct {
	// stands is true if the cluster has a Work for the binding, even an older
	// version.
	stands bool
	// ready is true if the Work was as planned before, and is applied and healthy.
	ready bool
	// after is the pause before the next try; zero for none.
	after time.Duration
	err   error
}

// bring brings the cluster's Work to what is planned.
func (p writer) bring(ctx context.Context, s *state, planned plan.WorkPlan) outcome {
	if there := worksIn(s.works, planned.Cluster); planned.Stands {
		return outcome{stands: len(there) > 0, ready: slices.ContainsFunc(there, rollup.ReadyAsSent)}
	}
	if after, awaits := kinds.Awaits(planned.Err); awaits {
		return outcome{stands: len(worksIn(s.works, planned.Cluster)) > 0, after: max(after, time.Millisecond)}
	}
	if planned.Err != nil {
		return p.keep(ctx, worksIn(s.works, planned.Cluster), planError(planned))
	}
	current, found, err := p.find(ctx, client.ObjectKeyFromObject(planned.Work))
	var stands, ready bool
	var after time.Duration
	switch {
	case err != nil:
	case !found:
		stands, err = p.create(ctx, planned)
	case isShare(current):
		return outcome{after: shareGoes}
	case p.written.Leaving(current):
		var ended bool
		if ended, after, err = p.recalls.Recall(ctx, s.key, current, planned.Work); ended && err == nil {
			stands, err = p.create(ctx, planned)
		}
	case anothers(s.key, current):
		err = taken(s.key, current)
	default:
		var changed bool
		stands, changed, err = p.change(ctx, current, planned)
		ready = !changed && rollup.Ready(current)
		if spec := s.binding.BindingSpec(); plan.Suspended(spec, planned.Cluster) && (!placement.IsWorkload(spec) || placement.Whole(spec)) {
			ready = rollup.ReadyAsSent(current) // what is kept from it does not change how it is
		}
	}
	if err == nil && stands {
		after, err = p.rename(ctx, s, planned)
	}
	return outcome{stands: stands, ready: ready, after: after, err: err}
}

// anothers reports whether a Work belongs to another binding. That can happen, as names contain hashes, and
// somebody may choose the name of a namespace so that the hashes are the same.
func anothers(key client.ObjectKey, work *workv1alpha1.Work) bool {
	owner, known := bindings.OwnerOf(work)
	return known && owner != key
}

// isShare reports whether a Work carries a share of a FederatedResourceQuota. A template with the same
// name has precedence: the share's loop removes the Work.
func isShare(work *workv1alpha1.Work) bool {
	_, is := plan.ShareOf(work)
	return is
}

// taken returns the error for a Work whose name belongs to another binding.
func taken(key client.ObjectKey, work *workv1alpha1.Work) error {
	owner, _ := bindings.OwnerOf(work)
	return fmt.Errorf("Work %s has its name, which is made of a hash that both have, and is of the binding %s: give the template of %s, or its namespace, another name", //nolint:staticcheck // begins with the name of a kind
		client.ObjectKeyFromObject(work), owner, key)
}

// keep leaves the cluster's Works as they are, and annotates them with why they are not up to date:
// else a change that fails would look like one that is
// done.
func (p writer) keep(ctx context.Context, works []*workv1alpha1.Work, fault error) outcome {
	out := outcome{stands: len(works) > 0, err: fault}
	if fault == nil {
		return out
	}
	text := excerpt.Bytes(fault.Error(), propagation.MaxFault)
	for _, w := range works {
		if w.Annotations[propagation.FaultAnnotation] == text || p.written.Leaving(w) {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{propagation.FaultAnnotation: text}}})
		if err == nil {
			marked := w.DeepCopy()
			if err = p.hub.Patch(ctx, marked, client.RawPatch(types.MergePatchType, patch)); err == nil {
				p.written.Wrote(marked)
			}
		}
		if err != nil && !bindings.IsStale(err) {
			out.err = errors.Join(fault, fmt.Errorf("mark the work as not up to date: %w", err))
		}
	}
	return out
}

// change brings a Work to what is planned, and reports whether it exists and whether it
// differed.
func (p writer) change(ctx context.Context, current *workv1alpha1.Work, planned plan.WorkPlan) (stands, changed bool, err error) {
	desired, changed := merged(current, planned.Work)
	if !changed {
		return true, false, nil
	}
	patch, err := bindings.PatchOfWork(current, desired)
	if err != nil {
		return true, true, err
	}
	if err := p.hub.Patch(ctx, desired, patch); err != nil {
		if bindings.IsStale(err) {
			return false, true, nil // gone, or changed by others: the event of that enqueues the binding again
		}
		return true, true, fmt.Errorf("change the work: %w", err)
	}
	p.written.Wrote(desired)
	log.FromContext(ctx).Info("changed a work", "cluster", planned.Cluster, "work", desired.Name)
	return true, true, nil
}

func (p writer) create(ctx context.Context, planned plan.WorkPlan) (bool, error) {
	work := planned.Work // Create sets it to the server's answer
	err := p.hub.Create(ctx, work)
	switch {
	case apierrors.IsAlreadyExists(err):
		return true, nil // the cache lags: the event of its creation enqueues the binding again
	case apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return false, loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, noSpace, fmt.Errorf("there is no namespace for its works yet: %w", err))
	case err != nil:
		return false, fmt.Errorf("create the work: %w", err)
	}
	p.written.Wrote(work)
	log.FromContext(ctx).Info("created a work", "cluster", planned.Cluster, "work", work.Name)
	return true, nil
}

// deleteStaleWorks removes the Works in clusters that the binding has left, once it has a Work
// elsewhere, or no clusters at all, and returns all errors of the pass.
func (p writer) deleteStaleWorks(ctx context.Context, s *state) (loop.Next, error) {
	keeps, first := plan.Keeps(plan.SpecOf(s.binding)), plan.LeaveFirst(s.binding.BindingSpec())
	var wait time.Duration
	if len(keeps) == 0 || s.stand > 0 {
		left := slices.DeleteFunc(slices.Clone(s.works), func(w *workv1alpha1.Work) bool {
			cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
			return !ok || slices.Contains(keeps, cluster) || slices.Contains(first, cluster) // these dispatch removes
		})
		deleted, after, err := leaving(ctx, p, s.binding, left)
		if err == nil {
			wait, err = after, p.remove(ctx, deleted)
		}
		if err != nil {
			s.failed = append(s.failed, fault{err: err})
		}
	}
	after, err := p.recalls.Decide(ctx, s.key, s.binding.GetLabels()[bindings.IDLabel(s.binding)], keeps...)
	if err != nil {
		s.failed = append(s.failed, fault{err: err})
	}
	if after > 0 && (wait == 0 || after < wait) {
		wait = after
	}
	s.complete = s.awaits == 0 && !s.held
	return loop.Next{After: wait}, joined(s.failed)
}

// remove deletes Works that are not being deleted yet, concurrently. Works of volume claims whose
// template is gone are annotated first: see releaser.
func (p writer) remove(ctx context.Context, works []*workv1alpha1.Work) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.parallel)
	for _, w := range works {
		group.Go(func() error {
			if err := p.claims.release(ctx, w); err != nil || p.written.Leaving(w) {
				return err
			}
			err := p.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: w.ObjectMeta}, client.Preconditions{UID: ptr.To(w.UID)})
			if err != nil && !bindings.IsStale(err) {
				return fmt.Errorf("delete work %s/%s: %w", w.Namespace, w.Name, err)
			}
			p.written.Deleted(w)
			log.FromContext(ctx).Info("deleted a work", "namespace", w.Namespace, "work", w.Name)
			return nil
		})
	}
	return group.Wait()
}

// worksIn returns those of works that are in one of the clusters.
func worksIn(works []*workv1alpha1.Work, clusters ...string) []*workv1alpha1.Work {
	var out []*workv1alpha1.Work
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); ok && slices.Contains(clusters, cluster) {
			out = append(out, w)
		}
	}
	return out
}
