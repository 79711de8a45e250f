package binding

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// recall annotates a Work whose deletion is blocked, so that its object stays in the cluster: the
// template was created again meanwhile, and its new Work would have to wait for as long. The new Work then
// adopts the object, or, if the cluster is already deleting that, reports it and creates it again.
func (p writer) recall(ctx context.Context, binding client.ObjectKey, leaving, planned *workv1alpha1.Work) error {
	if leaving.Annotations[workv1alpha2.WantedAgainAnnotation] == "true" || !blocked(leaving) || anothers(binding, leaving) || !sameObject(leaving, planned) {
		return nil // the Work's deletion, or its condition DeletionBlocked, enqueues the binding again
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": leaving.UID, "annotations": map[string]string{workv1alpha2.WantedAgainAnnotation: "true"}, // of this Work, not of a later one of its name
	}})
	if err != nil {
		return fmt.Errorf("recall the work %s: %w", client.ObjectKeyFromObject(leaving), err)
	}
	recalled := leaving.DeepCopy()
	switch err := p.hub.Patch(ctx, recalled, client.RawPatch(types.MergePatchType, patch)); {
	case bindings.IsStale(err):
		return nil
	case err != nil:
		return fmt.Errorf("recall the work %s: %w", client.ObjectKeyFromObject(leaving), err)
	}
	p.written.Wrote(recalled)
	log.FromContext(ctx).Info("what a work could not remove is wanted again: it stays", "namespace", leaving.Namespace, "work", leaving.Name)
	return nil
}

// blocked reports whether a Work is being deleted and has the condition DeletionBlocked.
func blocked(w *workv1alpha1.Work) bool {
	return !w.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
}

// sameObject reports whether two Works have the same object: an override
// may have given it another name meanwhile.
func sameObject(a, b *workv1alpha1.Work) bool {
	one, known := objectOf(a)
	other, too := objectOf(b)
	return known && too && one == other
}

// object identifies an object in a cluster.
type object struct {
	kind schema.GroupKind
	types.NamespacedName
}

// objectOf returns the object of a Work; false if it does not have exactly one.
func objectOf(w *workv1alpha1.Work) (object, bool) {
	var obj metav1.PartialObjectMetadata
	if len(w.Spec.Workload.Manifests) != 1 || json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &obj) != nil {
		return object{}, false
	}
	return object{obj.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}, true
}
