package quotashare

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/quota"
)

// arrivals passes on what comes. What a start finds comes with all quotas.
func arrivals() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofCluster names the quotas of which a cluster has a share.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.with(ctx, cluster.GetName())
}

// ofSpace names the quotas of which the cluster of an execution namespace has a share.
func (r *Reconciler) ofSpace(ctx context.Context, namespace client.Object) []reconcile.Request {
	cluster, is := workv1alpha2.ClusterOfExecutionNamespace(namespace.GetName())
	if !is {
		return nil
	}
	return r.with(ctx, cluster)
}

func (r *Reconciler) with(ctx context.Context, cluster string) []reconcile.Request {
	var list policyv1alpha1.FederatedResourceQuotaList
	if err := r.hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list quotas")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if _, has := quota.Shares(&list.Items[i])[cluster]; has {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// ofWork names the quota of which a Work brings a share, or keeps one.
func ofWork(_ context.Context, obj client.Object) []reconcile.Request {
	if key, concerns := concerned(obj); concerns {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

func concerned(obj client.Object) (client.ObjectKey, bool) {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return client.ObjectKey{}, false
	}
	if key, is := plan.ShareOf(work); is {
		return key, true
	}
	key, is := plan.ShareBeside(client.ObjectKey{
		Namespace: work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotationKey], Name: work.Annotations[workv1alpha2.ResourceBindingNameAnnotationKey],
	})
	return key, is && work.Name == plan.ShareName(key)
}

// besideBinding names the quota, if there is one, that a binding has precedence over.
func besideBinding(_ context.Context, binding client.Object) []reconcile.Request {
	if key, is := plan.ShareBeside(client.ObjectKeyFromObject(binding)); is {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// besides passes bindings on that come, change or go; those that a start finds come with
// all quotas.
func besides() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}
}

// changes passes Works on that bring shares or keep them: those that a start finds, for their
// quota may have gone meanwhile, those that are gone, those that somebody else wrote, and those
// that a cluster takes or refuses. It ends the wait for own writes.
func (w works) changes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return w.relevant(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			_, did := concerned(e.ObjectOld)
			relevant := w.relevant(e.ObjectNew)
			return (relevant || did) && differ(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			_, concerns := concerned(e.Object)
			if concerns {
				w.wrote.Gone(e.Object)
			}
			return concerns
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// differ reports whether two states of a Work differ in what is planned, or in whether its
// cluster refuses it.
func differ(before, now client.Object) bool {
	was, ok := before.(*workv1alpha1.Work)
	is, also := now.(*workv1alpha1.Work)
	return ok && also && (was.Generation != is.Generation || refusal(was) != refusal(is) ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations))
}

// relevant reports whether obj is of concern and not just an own write.
func (w works) relevant(obj client.Object) bool {
	if _, concerns := concerned(obj); !concerns {
		return false
	}
	work, ok := obj.(*workv1alpha1.Work)
	return ok && !w.wrote.Observed(work)
}
