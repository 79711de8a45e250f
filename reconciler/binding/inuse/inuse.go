// Package inuse decides what stays in a cluster that is being left for as long as something runs there that may need it.
//
// In goes a binding that is leaving clusters; out comes whether something that runs in its namespace is leaving one of them, too, and
// may need what the binding carries there: a Service, a ConfigMap or the like has to stay for as long. Which objects need which is not
// looked into, as an application may name them in ways that nobody can see. The package reads bindings and Works from a cache, and writes nothing.
package inuse

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/running"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// Of returns a function that reports whether something that runs in the namespace of b is leaving a cluster, too, and has its copy there
// yet. If that cannot be read, it counts as such. Nil is returned for a binding of what runs itself, and for a cluster-scoped one.
func Of(ctx context.Context, hub client.Reader, b workv1alpha2.Binding) func(cluster string) bool {
	if b.GetNamespace() == "" || runs(b) {
		return nil
	}
	return func(cluster string) bool {
		served := false
		err := bindings.Each(ctx, hub, func(other workv1alpha2.Binding) {
			served = served || runs(other) && leaves(other, cluster) && hasCopy(ctx, hub, other, cluster)
		}, client.InNamespace(b.GetNamespace()))
		return err != nil || served
	}
}

// EachLetGo calls yield for the bindings that may have been kept in a cluster because of one that was leaving it, and has left it. is is
// nil for a binding that is gone.
func EachLetGo(ctx context.Context, hub client.Reader, was, is workv1alpha2.Binding, yield func(workv1alpha2.Binding)) {
	if was.GetNamespace() == "" || !runs(was) {
		return
	}
	var left []string
	for _, task := range was.BindingSpec().GracefulEvictionTasks {
		if is == nil || !leaves(is, task.FromCluster) {
			left = append(left, task.FromCluster)
		}
	}
	if len(left) == 0 {
		return
	}
	err := bindings.Each(ctx, hub, func(b workv1alpha2.Binding) {
		if !runs(b) && slices.ContainsFunc(left, func(cluster string) bool { return leaves(b, cluster) }) {
			yield(b)
		}
	}, client.InNamespace(was.GetNamespace()))
	if err != nil {
		log.FromContext(ctx).Error(err, "find what was kept for a template that has left a cluster", "namespace", was.GetNamespace())
	}
}

// runs reports whether what a binding carries may run Pods.
func runs(b workv1alpha2.Binding) bool {
	return running.Of(bindings.TemplateOf(b).GroupKind()) != running.Passive
}

// leaves reports whether a binding is leaving a cluster for others.
func leaves(b workv1alpha2.Binding, cluster string) bool {
	return slices.ContainsFunc(b.BindingSpec().GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster })
}

// hasCopy reports whether a binding has a Work in a cluster that stays for now.
func hasCopy(ctx context.Context, hub client.Reader, b workv1alpha2.Binding, cluster string) bool {
	of := b.BindingSpec().Resource
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName(of.Kind, of.Name, of.Namespace)}
	work := &workv1alpha1.Work{}
	err := hub.Get(ctx, key, work, client.UnsafeDisableDeepCopy)
	return err == nil && work.DeletionTimestamp == nil || client.IgnoreNotFound(err) != nil
}
