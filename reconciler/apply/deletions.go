package apply

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates tell of what happens to templates that somebody keeps a watch on.
type Templates interface {
	Listen(l templatestore.Listener)
}

// deletions bring in the Kustomizations of what others delete, or change that they refer to: it counts
// at once, and not when drift is looked for next. Watches of objects are those that others have.
type deletions struct {
	wakes
	scheme *runtime.Scheme
	inbox  loop.Inbox[reconcile.Request]
}

// changed is a templatestore.Listener's.
func (d *deletions) changed(key templatestore.Key, before, after *unstructured.Unstructured, _ bool) {
	if after == nil && before != nil {
		d.deleted(before, key.GroupVersionKind.GroupKind())
	}
}

// deleted has the Kustomization that an object's labels name look at everything, if it holds the object.
func (d *deletions) deleted(obj client.Object, kind schema.GroupKind) {
	owner, ok := inventory.OwnerOf(obj)
	id := inventory.ID{Namespace: obj.GetNamespace(), Name: obj.GetName(), GroupKind: kind}
	if ok && d.lastApplied.misses(owner, id) {
		d.inbox.AddAfter(reconcile.Request{NamespacedName: owner}, debounceTime)
	}
}

// referred has the Kustomizations look at everything that refer to a ConfigMap or Secret which changed.
func (d *deletions) referred(ctx context.Context, kind string, key client.ObjectKey) {
	users := d.wakes.find(ctx, func(ks *kustomizev1.Kustomization) bool {
		return ks.Namespace == key.Namespace && ks.Spec.PostBuild != nil && slices.Contains(namesOf(ks.Spec.PostBuild.SubstituteFrom), kind+"/"+key.Name)
	})
	for _, user := range users {
		d.lastApplied.of(user.NamespacedName).again()
		d.inbox.AddAfter(user, debounceTime)
	}
}

func namesOf(refs []kustomizev1.SubstituteReference) []string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.Kind+"/"+ref.Name)
	}
	return out
}

// ofKind handles the deletions of a kind that the manager watches.
func (d *deletions) ofKind() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if gvk, err := apiutil.GVKForObject(e.Object, d.scheme); err == nil {
			d.deleted(e.Object, gvk.GroupKind())
		}
	}}
}
