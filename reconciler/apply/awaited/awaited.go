// Package awaited notices when something that Kustomizations wait for may be there: kinds, namespaces, and rights.
//
// In go events of metadata-only watches; out come handlers that enqueue the Kustomizations that may wait for the
// object. It reads nothing else, and writes nothing.
package awaited

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Kind is a kind of object for which Kustomizations may wait.
type Kind struct {
	// Object is of the kind that is watched.
	Object client.Object
	// After is how long it takes from the event until the object has an effect.
	After time.Duration
	// reasons are the reasons of the condition Ready with which a Kustomization may wait for such an object.
	reasons []string
}

const (
	// known is about how long it takes until the control plane's caches have a new right or namespace.
	known = 250 * time.Millisecond
	// served is about how long it takes from the definition of a kind until that is served.
	served = time.Second
)

// Kinds returns what may be waited for.
func Kinds() []Kind {
	rights := []string{applier.ReasonForbidden, meta.PruneFailedReason, meta.DependencyNotReadyReason, meta.HealthCheckFailedReason}
	return []Kind{
		{&corev1.Namespace{}, known, []string{applier.ReasonNamespaceNotFound, inventory.ReasonNamespaceTerminating}},
		{&apiextensionsv1.CustomResourceDefinition{}, served, []string{applier.ReasonUnknownKind}},
		{&corev1.ServiceAccount{}, known, append(slices.Clone(rights), applier.ReasonAccountNotFound)},
		{&rbacv1.Role{}, known, rights},
		{&rbacv1.RoleBinding{}, known, rights},
		{&rbacv1.ClusterRole{}, known, rights},
		{&rbacv1.ClusterRoleBinding{}, known, rights},
	}
}

// Find returns the Kustomizations that a function picks.
type Find func(ctx context.Context, match func(*kustomizev1.Kustomization) bool) []reconcile.Request

// Handler returns a handler that enqueues the Kustomizations that may wait for an object of the kind, when one is
// created or changed. find looks them up.
func (k Kind) Handler(find Find) handler.EventHandler {
	wake := func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range find(ctx, k.by(obj)) {
			queue.AddAfter(request, k.After)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !e.IsInInitialList {
				wake(ctx, e.Object, queue)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				wake(ctx, e.ObjectNew, queue)
			}
		},
	}
}

// by returns a function that reports whether a Kustomization may wait for an object. For an object in a
// namespace only a Kustomization of that namespace may, or one whose message names the namespace: a tenant
// cannot make the loop run others' Kustomizations by writing objects.
func (k Kind) by(obj client.Object) func(*kustomizev1.Kustomization) bool {
	return func(ks *kustomizev1.Kustomization) bool {
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		if ready == nil || ready.Status == metav1.ConditionTrue || !slices.Contains(k.reasons, ready.Reason) {
			return false
		}
		namespace := obj.GetNamespace()
		return namespace == "" || namespace == ks.Namespace || strings.Contains(ready.Message, `"`+namespace+`"`)
	}
}
