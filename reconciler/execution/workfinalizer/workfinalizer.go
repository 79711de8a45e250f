package workfinalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Finalizer keeps Works until their objects are gone, and ends them then. Use New.
type Finalizer struct {
	hub   client.Client
	wrote *writecache.Cache[*workv1alpha1.Work]
	// knows reports whether bindings can be read here.
	knows bool
}

// New returns a Finalizer. What it writes goes into wrote. An agent cannot read bindings
// (knowsBindings is false): it ends only Works that are being deleted themselves.
func New(hub client.Client, wrote *writecache.Cache[*workv1alpha1.Work], knowsBindings bool) Finalizer {
	return Finalizer{hub: hub, wrote: wrote, knows: knowsBindings}
}

// Listen calls seen for each Work of a binding whose deletion begins from now on, or in a cluster whose eviction ends.
func (p Finalizer) Listen(ctx context.Context, mgr ctrl.Manager, seen func(client.ObjectKey)) error {
	if !p.knows {
		return nil
	}
	for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			was, _ := before.(workv1alpha2.Binding)
			is, ok := after.(workv1alpha2.Binding)
			switch {
			case !ok:
			case is.GetDeletionTimestamp() != nil && (was == nil || was.GetDeletionTimestamp() == nil):
				p.works(ctx, is, plan.Keeps(is.BindingSpec()), seen)
			case was != nil && len(was.BindingSpec().GracefulEvictionTasks) > len(is.BindingSpec().GracefulEvictionTasks):
				p.works(ctx, is, left(was, is), seen)
			}
		}}); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	return nil
}

// left returns the clusters that a binding kept before, and does not any more.
func left(was, is workv1alpha2.Binding) []string {
	keeps := plan.Keeps(is.BindingSpec())
	return slices.DeleteFunc(plan.Keeps(was.BindingSpec()), func(name string) bool { return slices.Contains(keeps, name) })
}

func (p Finalizer) works(ctx context.Context, b workv1alpha2.Binding, clusters []string, seen func(client.ObjectKey)) {
	for _, cluster := range clusters {
		switch work, found, err := bindings.WorkIn(ctx, p.hub, b, cluster); {
		case err != nil:
			log.FromContext(ctx).Error(err, "look for the works of a binding that goes", "binding", client.ObjectKeyFromObject(b))
		case found:
			seen(client.ObjectKeyFromObject(work))
		}
	}
}

// Effective returns a Work as the loop has to treat it. A Work whose binding is being deleted, or has left the cluster and says
// so, and which no other finalizer keeps, gets the time of that as its deletion timestamp; beside is true for it. there
// is false if this process ended the Work a moment ago and the cache does not show that yet.
func (p Finalizer) Effective(ctx context.Context, work *workv1alpha1.Work) (as *workv1alpha1.Work, beside, there bool, err error) {
	if !p.knows || !bindings.EndsBeside(work) {
		return work, false, true, nil
	}
	since, err := bindings.EndsSince(ctx, p.hub, work)
	if err != nil || since == nil {
		return work, false, true, err
	}
	deleted := *work
	deleted.DeletionTimestamp = since
	return &deleted, true, !p.wrote.Ended(work), nil
}

// Stays reports whether a Work does not go, by itself or with its binding.
func (p Finalizer) Stays(ctx context.Context, work *workv1alpha1.Work) bool {
	as, _, _, err := p.Effective(ctx, work)
	return err == nil && as.DeletionTimestamp.IsZero()
}

// Has reports whether the loop's finalizer keeps the Work until its objects are gone.
func Has(work *workv1alpha1.Work) bool {
	return controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer)
}

// Add adds the loop's finalizer to a Work, which keeps it until its objects are gone, and
// returns the Work as written.
func (p Finalizer) Add(ctx context.Context, work *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	out := work.DeepCopy()
	controllerutil.AddFinalizer(out, workv1alpha2.ExecutionControllerFinalizer)
	if err := p.hub.Patch(ctx, out, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("hold work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	p.wrote.Wrote(out)
	return out, nil
}

// Remove ends a Work that is being deleted, by removing the loop's finalizer.
func (p Finalizer) Remove(ctx context.Context, work *workv1alpha1.Work) error {
	at := slices.Index(work.Finalizers, workv1alpha2.ExecutionControllerFinalizer)
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": path, "value": workv1alpha2.ExecutionControllerFinalizer},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return fmt.Errorf("encode the patch of finalizers: %w", err)
	}
	out := work.DeepCopy()
	err = p.hub.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("let go of work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	p.wrote.Wrote(out)
	return nil
}

// End ends a Work along with its binding, unless somebody has written the Work meanwhile. Flotilla's
// control plane deletes an object and drops the finalizer in one write when the loop that owns
// the finalizer deletes it without grace. Another API server only sets the deletion timestamp:
// its event then starts another pass, in which Remove ends the Work.
func (p Finalizer) End(ctx context.Context, work *workv1alpha1.Work) error {
	err := p.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}},
		client.GracePeriodSeconds(0), client.Preconditions{UID: ptr.To(work.UID), ResourceVersion: ptr.To(work.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("end work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	p.wrote.Deleted(work)
	return nil
}

// Delete deletes a Work whose binding is being deleted, so that it has a deletion
// timestamp of its own: its end takes long, and people who read Works have to see that.
func (p Finalizer) Delete(ctx context.Context, work *workv1alpha1.Work) error {
	err := p.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}, client.Preconditions{UID: ptr.To(work.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}
