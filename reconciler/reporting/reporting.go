package reporting

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/reporting"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Reporter reports what changes. Use New.
type Reporter struct {
	hub    client.Reader
	events loop.Recorder
}

// New returns a reporter. hub reads from a cache.
func New(hub client.Reader, events loop.Recorder) *Reporter {
	return &Reporter{hub: hub, events: events}
}

// Loops is the recorder for loops beside the reporter: it leaves out what the reporter reports
// itself, in the order in which objects show it and in the words that Karmada's clients look for.
func (r *Reporter) Loops() loop.Recorder { return beside{r.events} }

type beside struct{ loop.Recorder }

// Event implements loop.Recorder.
func (b beside) Event(obj runtime.Object, eventType, reason, message string) {
	switch reason {
	case workv1alpha2.EventReasonScheduleBindingSucceed, workv1alpha2.EventReasonScheduleBindingFailed, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed:
		return
	}
	b.Recorder.Event(obj, eventType, reason, message)
}

// Register has the reporter listen to mgr's cache while the loops run.
func (r *Reporter) Register(mgr ctrl.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		for _, heard := range []struct {
			kind client.Object
			hear func(ctx context.Context, before, after any)
		}{
			{&workv1alpha2.ResourceBinding{}, r.binding},
			{&workv1alpha2.ClusterResourceBinding{}, r.binding},
			{&workv1alpha1.Work{}, r.work},
			{&policyv1alpha1.FederatedResourceQuota{}, r.quota},
			{&corev1.Namespace{}, r.space},
		} {
			informer, err := mgr.GetCache().GetInformer(ctx, heard.kind)
			if err != nil {
				return fmt.Errorf("listen to what is reported: %w", err)
			}
			if _, err := informer.AddEventHandler(listener(ctx, heard.hear)); err != nil {
				return fmt.Errorf("listen to what is reported: %w", err)
			}
		}
		<-ctx.Done()
		return nil
	}))
}

// listener hands changes on, with nil for what was not there before, or is not any
// more; what was there at the start it leaves out.
func listener(ctx context.Context, hear func(ctx context.Context, before, after any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if !initial {
				hear(ctx, nil, obj)
			}
		},
		UpdateFunc: func(before, after any) { hear(ctx, before, after) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			hear(ctx, obj, nil)
		},
	}
}

func (r *Reporter) binding(ctx context.Context, before, after any) {
	is, ok := after.(workv1alpha2.Binding)
	if !ok {
		return
	}
	was, _ := before.(workv1alpha2.Binding)
	for _, n := range reporting.Binding(was, is) {
		about := is
		if n.About == reporting.Dependent {
			if about = r.find(ctx, n.Of); about == nil {
				continue
			}
			n.About = reporting.Itself
		}
		r.report(about, about, n)
	}
}

func (r *Reporter) work(ctx context.Context, before, after any) {
	is, ok := after.(*workv1alpha1.Work)
	if !ok {
		return
	}
	was, _ := before.(*workv1alpha1.Work)
	events := reporting.Work(was, is)
	if len(events) == 0 {
		return
	}
	if key, share := plan.ShareOf(is); share {
		r.share(ctx, key, is, events)
		return
	}
	var owner workv1alpha2.Binding
	if key, known := bindings.OwnerOf(is); known {
		owner = r.find(ctx, key)
	}
	for _, n := range events {
		r.report(is, owner, n)
	}
}

// share reports a Work that brings a share of a quota: that it was written is for the quota.
func (r *Reporter) share(ctx context.Context, key types.NamespacedName, work *workv1alpha1.Work, events []reporting.Event) {
	quota := &policyv1alpha1.FederatedResourceQuota{}
	err := r.hub.Get(ctx, key, quota)
	for _, n := range events {
		switch {
		case n.About == reporting.Itself:
			r.report(work, nil, n)
		case err == nil && n.About == reporting.Both:
			r.events.Event(quota, n.Type, n.Reason, n.Message)
		}
	}
}

func (r *Reporter) quota(_ context.Context, before, after any) {
	is, ok := after.(*policyv1alpha1.FederatedResourceQuota)
	if !ok {
		return
	}
	was, _ := before.(*policyv1alpha1.FederatedResourceQuota)
	for _, n := range reporting.Quota(was, is) {
		r.report(is, nil, n)
	}
}

// space reports that a cluster's namespace was made, or is gone.
func (r *Reporter) space(ctx context.Context, before, after any) {
	switch namespace, ok := after.(*corev1.Namespace); {
	case !ok:
		if was, ok := before.(*corev1.Namespace); ok {
			r.cluster(ctx, was.Name, clusterv1alpha1.EventReasonRemoveExecutionSpaceSucceed, "The namespace for the cluster's Works is gone.")
		}
	case before == nil:
		r.cluster(ctx, namespace.Name, clusterv1alpha1.EventReasonCreateExecutionSpaceSucceed, "The namespace for the cluster's Works was made.")
	}
}

// cluster reports about a cluster, by the name of its namespace. It may have left.
func (r *Reporter) cluster(ctx context.Context, namespace, reason, message string) {
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(namespace)
	if !ok {
		return
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.hub.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		cluster = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	r.events.Event(cluster, corev1.EventTypeNormal, reason, message)
}

// report has what succeeded written on what it is about: itself, or owner and its
// template. It is for nobody where owner is not there.
func (r *Reporter) report(itself runtime.Object, owner workv1alpha2.Binding, n reporting.Event) {
	if n.About == reporting.Itself {
		r.events.Event(itself, n.Type, n.Reason, n.Message)
		return
	}
	if owner == nil {
		return
	}
	r.events.Event(bindings.TemplateRef(owner), n.Type, n.Reason, n.Message)
	if n.About == reporting.Both {
		r.events.Event(owner, n.Type, n.Reason, n.Message)
	}
}

// find returns the binding under key; nil if there is none.
func (r *Reporter) find(ctx context.Context, key types.NamespacedName) workv1alpha2.Binding {
	b, found, err := bindings.Get(ctx, r.hub, key)
	if err != nil || !found {
		return nil
	}
	return b
}
