package transitions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Options say where transitions are logged.
type Options struct {
	Log logr.Logger
	// Screen is called with a line for people about what is moved, when the line is
	// complete, and about clusters that are lost at once; nil if nobody looks. A cluster that turned reaches the screen by
	// Log.
	Screen func(at time.Time, line string)
}

// watcher handles changes of Clusters and bindings.
type watcher struct {
	cache cache.Cache
	opts  Options

	mutex     sync.Mutex
	notReady  map[string]time.Time // since when, by cluster
	pending   map[move]*batch
	suspicion suspicion
}

// Register has the manager watch for transitions while it leads.
func Register(mgr ctrl.Manager, opts Options) error {
	return mgr.Add(newWatcher(mgr.GetCache(), opts))
}

func newWatcher(from cache.Cache, opts Options) *watcher {
	return &watcher{cache: from, opts: opts, notReady: map[string]time.Time{}, pending: map[move]*batch{}, suspicion: suspicion{of: map[string]bool{}}}
}

// Start implements manager.Runnable.
func (w *watcher) Start(ctx context.Context) error {
	clusters := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { w.cluster(nil, obj.(*clusterv1alpha1.Cluster)) },
		UpdateFunc: func(before, after any) {
			w.cluster(before.(*clusterv1alpha1.Cluster), after.(*clusterv1alpha1.Cluster))
		},
		DeleteFunc: func(obj any) {
			if unseen, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = unseen.Obj
			}
			if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
				w.gone(c)
			}
		},
	}
	bindings := toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) { w.binding(before.(workv1alpha2.Binding), after.(workv1alpha2.Binding)) },
	}
	var stops []func() error
	for _, of := range []struct {
		kind    client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&clusterv1alpha1.Cluster{}, clusters},
		{&workv1alpha2.ResourceBinding{}, bindings},
		{&workv1alpha2.ClusterResourceBinding{}, bindings},
	} {
		informer, err := w.cache.GetInformer(ctx, of.kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch for transitions: %w", err)
		}
		registration, err := informer.AddEventHandler(of.handler)
		if err != nil {
			return fmt.Errorf("watch for transitions: %w", err)
		}
		stops = append(stops, func() error { return informer.RemoveEventHandler(registration) })
	}
	<-ctx.Done()
	for _, stop := range stops {
		_ = stop() // the informer has ended, too
	}
	w.stop()
	return nil
}

// cluster handles a new or changed cluster; before is nil for a new one.
func (w *watcher) cluster(before, after *clusterv1alpha1.Cluster) {
	is := readiness(after)
	w.mutex.Lock()
	if is == nil || is.Status == metav1.ConditionTrue {
		delete(w.notReady, after.Name)
	} else {
		w.notReady[after.Name] = is.LastTransitionTime.Time
	}
	w.mutex.Unlock()
	w.suspect(after, true)
	if before == nil || after.Spec.SyncMode != clusterv1alpha1.Pull || is == nil || is.Status == metav1.ConditionUnknown {
		return // the cluster loop logs what it writes itself
	}
	if was := readiness(before); was == nil || was.Status != is.Status {
		w.opts.Log.WithValues("name", after.Name).Info("Cluster turned", "ready", is.Status, "reason", is.Reason)
	}
}

// readiness returns the cluster's condition Ready; nil if it has none.
func readiness(cluster *clusterv1alpha1.Cluster) *metav1.Condition {
	return meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
}
