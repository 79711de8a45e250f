package watches

import (
	"context"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/silences"
)

// spread is the pause between the runs that one cluster causes: a cluster that many share must not have all of them at
// once.
const spread = 20 * time.Millisecond

// WatchClusters adds a watch of clusters to mgr. When one falls silent, or is heard of again, the inbox gets the
// Kustomizations that check the health of something there.
func (m MapFuncs) WatchClusters(mgr ctrl.Manager, inbox *loop.Inbox[reconcile.Request], clock clock.PassiveClock) error {
	return silences.New(m.Hub, silences.Options{
		Since: silentSince, Clock: clock, Turned: m.doubting(inbox, m.checking), Heard: m.doubting(inbox, m.waitingFor),
	}).Register(mgr, "apply-clusters")
}

// doubting returns a function that has the Kustomizations looked at anew that find returns for a cluster.
func (m MapFuncs) doubting(inbox *loop.Inbox[reconcile.Request], find func(ctx context.Context, cluster string) ([]reconcile.Request, error)) func(context.Context, string) error {
	return func(ctx context.Context, cluster string) error {
		requests, err := find(ctx, cluster)
		for i, request := range requests {
			m.States.Doubt(request.NamespacedName)
			inbox.AddAfter(request, debounceTime+time.Duration(i)*spread)
		}
		return err
	}
}

// silentSince returns since when a cluster is not heard of, or not in full; zero for one that is.
func silentSince(c *clusterv1alpha1.Cluster) time.Time {
	silence, _ := rollup.SilenceOf(c)
	return silence.Since
}

// waitingFor returns those of checking that say that they wait for a silent cluster. One that looked at a cluster in a pause,
// in which nobody hears that it comes and goes, would say so for as long as the pause lasts.
func (m MapFuncs) waitingFor(ctx context.Context, cluster string) ([]reconcile.Request, error) {
	return m.there(ctx, cluster, silent)
}

// checking returns the Kustomizations that check the health of something in a cluster.
func (m MapFuncs) checking(ctx context.Context, cluster string) ([]reconcile.Request, error) {
	return m.there(ctx, cluster, func(*kustomizev1.Kustomization) bool { return true })
}

// there returns the Kustomizations that match, and check the health of something in a cluster.
func (m MapFuncs) there(ctx context.Context, cluster string, match func(*kustomizev1.Kustomization) bool) ([]reconcile.Request, error) {
	there := map[string]bool{}
	err := bindings.Each(ctx, m.Hub, func(b workv1alpha2.Binding) {
		if id, ok := templateOf(b); ok && slices.ContainsFunc(plan.Targets(plan.SpecOf(b)), func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }) {
			there[id.String()] = true
		}
	})
	if err != nil || len(there) == 0 {
		return nil, err
	}
	return m.Find(ctx, func(ks *kustomizev1.Kustomization) bool { return match(ks) && checks(ks, there) }), nil
}

// checks reports whether a Kustomization checks the health of one of these objects, which are named as in inventories.
func checks(ks *kustomizev1.Kustomization, objects map[string]bool) bool {
	switch {
	case ks.Spec.Suspend:
		return false
	case ks.Spec.Wait:
		return ks.Status.Inventory != nil && slices.ContainsFunc(ks.Status.Inventory.Entries, func(e kustomizev1.ResourceRef) bool { return objects[e.ID] })
	default:
		return slices.ContainsFunc(health.Listed(ks), func(e inventory.Entry) bool { return objects[e.ID.String()] })
	}
}

// parent enqueues the Kustomization that holds another one, and checks its health, when that begins to wait for a silent
// cluster, or does so no more. Labels alone do not name it, as anyone may set them.
func (m MapFuncs) parent(ctx context.Context, before, after client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	was, okBefore := before.(*kustomizev1.Kustomization)
	is, okAfter := after.(*kustomizev1.Kustomization)
	if !okBefore || !okAfter || silent(was) == silent(is) {
		return
	}
	owner, ok := inventory.OwnerOf(is)
	if !ok {
		return
	}
	var ks kustomizev1.Kustomization
	if err := m.Hub.Get(ctx, owner, &ks, client.UnsafeDisableDeepCopy); err != nil {
		return // it is gone, or the cache will have it with an event of its own
	}
	if id := inventory.OfKustomization(client.ObjectKeyFromObject(is)); checks(&ks, map[string]bool{id.String(): true}) {
		m.States.Doubt(owner)
		queue.AddAfter(reconcile.Request{NamespacedName: owner}, debounceTime)
	}
}

func silent(ks *kustomizev1.Kustomization) bool {
	ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Reason == health.ReasonClusterSilent
}
