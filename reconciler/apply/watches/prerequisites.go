package watches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/fairqueue"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// kind is a kind of object for which Kustomizations may wait.
type kind struct {
	// object is of the kind that is watched.
	object client.Object
	// after is how long after an event the Kustomizations are looked for: first when the object usually has an effect,
	// then again. How long that takes is not known, as a busy control plane's own caches lag; and a Kustomization
	// that was just refused may say so only later than the event.
	after []time.Duration
	// reasons are the reasons of the condition Ready with which a Kustomization may wait for such an object.
	reasons []string
	// gone says that they may wait for one to go: nothing is created in a namespace before that is gone.
	gone bool
}

// kinds returns what may be waited for.
func kinds() []kind {
	known := []time.Duration{250 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second}
	served := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}
	rights := []string{applier.ReasonForbidden, meta.PruneFailedReason, meta.DependencyNotReadyReason, meta.HealthCheckFailedReason}
	return []kind{
		{&corev1.Namespace{}, known, []string{applier.ReasonNamespaceNotFound, inventory.ReasonNamespaceTerminating}, true},
		{&apiextensionsv1.CustomResourceDefinition{}, served, []string{applier.ReasonUnknownKind}, false},
		{&corev1.ServiceAccount{}, known, append(slices.Clone(rights), applier.ReasonAccountNotFound), false},
		{&rbacv1.Role{}, known, rights, false},
		{&rbacv1.RoleBinding{}, known, rights, false},
		{&rbacv1.ClusterRole{}, known, rights, false},
		{&rbacv1.ClusterRoleBinding{}, known, rights, false},
	}
}

// search is one search for those who wait for objects of a kind in a namespace; events that come together share it.
type search struct {
	kind      int // in Prerequisites.kinds
	namespace string
	turn      int // in kind.after
}

// Prerequisites wakes Kustomizations when what they wait for may be there. Use NewPrerequisites.
type Prerequisites struct {
	among Finder
	inbox Inbox
	kinds []kind
}

// Finder has the Kustomizations.
type Finder interface {
	// Find returns those that match.
	Find(ctx context.Context, match func(*kustomizev1.Kustomization) bool, among ...client.ListOption) []reconcile.Request
}

// Inbox takes the Kustomizations that have to be reconciled.
type Inbox interface {
	Add(request reconcile.Request, later bool)
}

// NewPrerequisites returns a watch that finds Kustomizations among those, and puts them into inbox.
func NewPrerequisites(among Finder, inbox Inbox) *Prerequisites {
	return &Prerequisites{among: among, inbox: inbox, kinds: kinds()}
}

// Register adds the watch to mgr.
func (w *Prerequisites) Register(mgr ctrl.Manager) error {
	loop := builder.TypedControllerManagedBy[search](mgr).
		Named("apply-awaited").
		WithOptions(controller.TypedOptions[search]{NewQueue: fairqueue.By(1, func(l search) string { return l.namespace })})
	for i, kind := range w.kinds {
		loop.WatchesMetadata(kind.object, w.handler(i))
	}
	if err := loop.Complete(w); err != nil {
		return fmt.Errorf("register apply-awaited: %w", err)
	}
	return nil
}

// handler returns a handler that looks for those who wait for an object of a kind when one is created, changed or,
// where that is waited for, gone.
func (w *Prerequisites) handler(kind int) handler.TypedEventHandler[client.Object, search] {
	type queue = workqueue.TypedRateLimitingInterface[search]
	changed := func(obj client.Object, queue queue) {
		for turn, after := range w.kinds[kind].after {
			queue.AddAfter(search{kind: kind, namespace: obj.GetNamespace(), turn: turn}, after)
		}
	}
	return handler.TypedFuncs[client.Object, search]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) {
			if !e.IsInInitialList {
				changed(e.Object, queue)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				changed(e.ObjectNew, queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue queue) {
			if w.kinds[kind].gone {
				changed(e.Object, queue)
			}
		},
	}
}

// Reconcile wakes those who wait now.
func (w *Prerequisites) Reconcile(ctx context.Context, l search) (reconcile.Result, error) {
	for _, request := range w.among.Find(ctx, waits(w.kinds[l.kind].reasons, l.namespace)) {
		w.inbox.Add(request, false)
	}
	return reconcile.Result{}, nil
}

// waits returns a function that reports whether a Kustomization may wait, with one of these reasons, for an object of a
// namespace; "" for one that is in none. For an object in a namespace only a Kustomization of that namespace may, or one
// whose message names the namespace: a tenant cannot make the loop run others' Kustomizations by writing objects.
func waits(reasons []string, namespace string) func(*kustomizev1.Kustomization) bool {
	return func(ks *kustomizev1.Kustomization) bool {
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		if ready == nil || ready.Status == metav1.ConditionTrue || !slices.Contains(reasons, ready.Reason) {
			return false
		}
		return namespace == "" || namespace == ks.Namespace || strings.Contains(ready.Message, `"`+namespace+`"`)
	}
}
