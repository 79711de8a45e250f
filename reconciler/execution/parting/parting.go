package parting

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

// Parting ends Works, and keeps them until they may end. Use New.
type Parting struct {
	hub   client.Client
	wrote *writecache.Cache[*workv1alpha1.Work]
	// knows reports whether bindings can be read here.
	knows bool
}

// New returns a Parting. What it writes goes into wrote. An agent cannot read bindings,
// and ends what is being deleted alone.
func New(hub client.Client, wrote *writecache.Cache[*workv1alpha1.Work], knowsBindings bool) Parting {
	return Parting{hub: hub, wrote: wrote, knows: knowsBindings}
}

// Listen calls seen for each Work whose binding is being deleted from now on, in one of
// the clusters.
func (p Parting) Listen(ctx context.Context, mgr ctrl.Manager, seen func(client.ObjectKey)) error {
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
			if ok && is.GetDeletionTimestamp() != nil && (was == nil || was.GetDeletionTimestamp() == nil) {
				p.works(ctx, is, seen)
			}
		}}); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	return nil
}

func (p Parting) works(ctx context.Context, b workv1alpha2.Binding, seen func(client.ObjectKey)) {
	for _, cluster := range plan.Keeps(b.BindingSpec()) {
		switch work, found, err := bindings.WorkIn(ctx, p.hub, b, cluster); {
		case err != nil:
			log.FromContext(ctx).Error(err, "look for the works of a binding that goes", "binding", client.ObjectKeyFromObject(b))
		case found:
			seen(client.ObjectKeyFromObject(work))
		}
	}
}

// As returns a Work as it is to be taken, and false if it has ended a moment ago. One
// whose binding is being deleted, and which no other finalizer keeps, is taken for being deleted
// itself; beside is true for it.
func (p Parting) As(ctx context.Context, work *workv1alpha1.Work) (as *workv1alpha1.Work, beside, there bool, err error) {
	if !p.knows || !bindings.EndsBeside(work) {
		return work, false, true, nil
	}
	since, err := bindings.Parting(ctx, p.hub, work)
	if err != nil || since == nil {
		return work, false, true, err
	}
	parting := *work
	parting.DeletionTimestamp = since
	return &parting, true, !p.wrote.Ended(work), nil
}

// Stays reports whether a Work is to stay: neither it nor its binding is being deleted.
func (p Parting) Stays(ctx context.Context, work *workv1alpha1.Work) bool {
	as, _, _, err := p.As(ctx, work)
	return err == nil && as.DeletionTimestamp.IsZero()
}

// HasFinalizer reports whether the loop's finalizer keeps the Work until its objects are gone.
func HasFinalizer(work *workv1alpha1.Work) bool {
	return controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer)
}

// AddFinalizer returns a Work as it is once the loop's finalizer keeps it until its objects
// are gone.
func (p Parting) AddFinalizer(ctx context.Context, work *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	out := work.DeepCopy()
	controllerutil.AddFinalizer(out, workv1alpha2.ExecutionControllerFinalizer)
	if err := p.hub.Patch(ctx, out, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("hold work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	p.wrote.Wrote(out)
	return out, nil
}

// LetGo ends a Work: it takes the loop's finalizer off one that is being deleted.
func (p Parting) LetGo(ctx context.Context, work *workv1alpha1.Work) error {
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

// End ends a Work beside its binding, if nobody has written it meanwhile. The control
// plane takes what is deleted without grace by the loop whose finalizer keeps it for let go of, in
// one write. Another API server marks it as being deleted: that brings it back, to LetGo.
func (p Parting) End(ctx context.Context, work *workv1alpha1.Work) error {
	err := p.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}},
		client.GracePeriodSeconds(0), client.Preconditions{UID: ptr.To(work.UID), ResourceVersion: ptr.To(work.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("end work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	p.wrote.Deleted(work)
	return nil
}

// Mark has a Work that goes beside its binding say itself that it is being deleted: it takes
// long, and who looks at Works is to see it.
func (p Parting) Mark(ctx context.Context, work *workv1alpha1.Work) error {
	err := p.hub.Delete(ctx, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}, client.Preconditions{UID: ptr.To(work.UID)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("mark work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}
