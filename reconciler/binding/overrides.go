package binding

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/override"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// overrideLister has the overrides that exist. The watch of overrides keeps it up to
// date and has filled it before the loop looks at its first binding, so that
// nothing is rendered without an override that was there before.
type overrideLister struct {
	mu    sync.RWMutex
	index override.Index
}

// of returns the overrides that apply to r.
func (b *overrideLister) of(r selector.Resource) []policyv1alpha1.Override {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.index.Of(r)
}

func (b *overrideLister) set(o policyv1alpha1.Override) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index.Set(o)
}

func (b *overrideLister) remove(o policyv1alpha1.Override) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.index.Remove(o)
}

// regrouped returns the overrides for which a change of a cluster makes it
// another one.
func (b *overrideLister) regrouped(before, after *clusterv1alpha1.Cluster) []policyv1alpha1.Override {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var out []policyv1alpha1.Override
	b.index.Each(func(o policyv1alpha1.Override) {
		if override.Regroups(o, before, after) {
			out = append(out, o)
		}
	})
	return out
}

// overrideEvents keeps the overrideLister, and looks at the bindings that an override
// touches, or touched.
func (r *Reconciler) overrideEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			o := e.Object.(policyv1alpha1.Override)
			r.overrides.set(o)
			if !e.IsInInitialList { // at the start every binding is looked at anyway
				r.addTouched(ctx, q, o)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(policyv1alpha1.Override), e.ObjectNew.(policyv1alpha1.Override)
			r.overrides.set(after)
			if before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() {
				r.addTouched(ctx, q, before, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			o := e.Object.(policyv1alpha1.Override)
			r.overrides.remove(o)
			r.addTouched(ctx, q, o)
		},
	}
}

// addTouched adds the bindings whose template one of the versions of an
// override selects, if they are on a cluster that one of them means.
func (r *Reconciler) addTouched(ctx context.Context, q queue, versions ...policyv1alpha1.Override) {
	meant, err := r.works.meant(ctx, versions...)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the clusters that an override means", "override", versions[0].GetName())
		return
	}
	found := map[ctrl.Request]bool{} // once each, however many selectors find it
	err = candidates(ctx, r.works.hub, func(b workv1alpha2.Binding) {
		if req := requestFor(b); !found[req] && isOn(b, meant) && touches(ctx, r.templates.Get, b, versions...) {
			found[req] = true
		}
	}, versions...)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings that an override touches", "override", versions[0].GetName())
	}
	for req := range found {
		q.Add(req)
	}
}

// clusterEvents looks at the bindings of a cluster that joins, at those that leave others
// for one that is there again, and at those whose overrides ask for what changed of it.
func (r *Reconciler) clusterEvents() handler.TypedEventHandler[*clusterv1alpha1.Cluster, ctrl.Request] {
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, ctrl.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster], q queue) {
			if !e.IsInInitialList {
				r.addOnCluster(ctx, q, e.Object.Name, nil)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster], q queue) {
			if silent(e.ObjectOld) && !silent(e.ObjectNew) {
				r.addLeaving(ctx, q, e.ObjectNew.Name)
			}
			if !selectable(e.ObjectOld, e.ObjectNew) {
				return
			}
			if overrides := r.overrides.regrouped(e.ObjectOld, e.ObjectNew); len(overrides) > 0 {
				r.addOnCluster(ctx, q, e.ObjectNew.Name, overrides)
			}
		},
	}
}

// addOnCluster adds the bindings on a cluster; overrides, if any, leaves out
// those that none of them touches.
func (r *Reconciler) addOnCluster(ctx context.Context, q queue, cluster string, overrides []policyv1alpha1.Override) {
	err := bindings.Each(ctx, r.works.hub, func(b workv1alpha2.Binding) {
		if len(overrides) == 0 || touches(ctx, r.templates.Get, b, overrides...) {
			q.Add(requestFor(b))
		}
	}, client.MatchingFields{bindings.ByCluster: cluster})
	if err != nil {
		log.FromContext(ctx).Error(err, "find the bindings on a cluster", "cluster", cluster)
	}
}
