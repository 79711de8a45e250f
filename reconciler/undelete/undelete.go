// Package undelete decides what of a deleted Work stays in its cluster, as another Work wants it there again.
//
// In go a Work that is being deleted, and the one that is to take its place; out comes the annotation
// workv1alpha2.WantedAgainAnnotation on the former, by which the execution loop lets go of its object, and then its end. The annotation is
// taken back where the object is not wanted after all: else it would stay in its cluster for ever. Which namespaces are wanted again is for their loop to say. The package
// writes nothing else, and deletes no Work that the execution loop has not let go of.
package undelete

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
	"github.com/flotilla-io/flotilla/policies/undeletable"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// Recaller annotates Works. All its fields have to be set; Keep, LetGo and End need Hub and Written alone.
type Recaller struct {
	Hub client.Writer
	// Cluster returns a cluster, and false if there is none of the name.
	Cluster func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, bool, error)
	// Leaving returns the Works that name a binding and are being deleted.
	Leaving func(ctx context.Context, binding client.ObjectKey) ([]*workv1alpha1.Work, error)
	Written *writecache.Cache[*workv1alpha1.Work]
	Clock   clock.PassiveClock
}

// Bounds of the pause before it is looked again whether the cluster of a Work that is being deleted is away, or back: it counts as
// ready for a while after it was lost.
const (
	soon = time.Second
	late = 15 * time.Second
)

// The values of workv1alpha2.WantedAgainAnnotation; none is "".
const (
	wanted    = workv1alpha2.WantedAgain
	undecided = workv1alpha2.WantedAgainUndecided
)

// Recall recalls a Work of the binding that is being deleted, so that its object stays in the cluster for the planned one, which has to
// wait for its end: where its deletion is blocked; and where its cluster is away and the object goes on as it is, as a commit that is
// taken back meanwhile is to have deleted nothing. Once the execution loop has let go of the object, it ends the Work: the caller then has
// to create the next one, which adopts the object, or, if the cluster is already deleting that, reports it and creates it again. It returns
// when to look again; zero for not at all.
func (r Recaller) Recall(ctx context.Context, binding client.ObjectKey, leaving, planned *workv1alpha1.Work) (ended bool, after time.Duration, err error) {
	was, is := objectOf(leaving), objectOf(planned)
	owner, owned := bindings.OwnerOf(leaving)
	value := leaving.Annotations[workv1alpha2.WantedAgainAnnotation]
	switch {
	case leaving.DeletionTimestamp == nil, owned && owner != binding:
		return false, 0, nil // the Work's deletion, or its condition DeletionBlocked, enqueues the binding again
	case was == nil, is == nil, named(was) != named(is), value != wanted && !Blocked(leaving) && !undeletable.Continues(was, is):
		return false, 0, r.annotate(ctx, leaving, "")
	case value == wanted:
		ended, err = r.End(ctx, leaving)
		return ended, 0, err
	case !Blocked(leaving) && value == "":
		away, _, err := r.away(ctx, leaving)
		if err != nil || !away {
			return false, r.pause(leaving), err
		}
	}
	return false, 0, r.annotate(ctx, leaving, wanted)
}

// End ends a Work that is recalled, if the execution loop has let go of what it made, and reports whether it did. Whoever calls it has to
// create the next Work at once: nobody else would ever remove the objects.
func (r Recaller) End(ctx context.Context, w *workv1alpha1.Work) (bool, error) {
	patch, has := bindings.WithoutFinalizer(w, workv1alpha2.ExecutionControllerFinalizer)
	if !has || !Released(w) {
		return false, nil
	}
	ended := w.DeepCopy()
	switch err := r.Hub.Patch(ctx, ended, patch); {
	case bindings.IsStale(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("end the recalled work %s: %w", client.ObjectKeyFromObject(w), err)
	}
	r.Written.Wrote(ended)
	return len(ended.Finalizers) == 0, nil
}

// Decide decides about the Works that name a binding, are being deleted, and have no successor in their cluster, as it is in none but
// those that it keeps. What a former binding of the name left in a cluster that is away stays undecided until that is back, and a moment
// longer: it is not placed in again before. All others go, whatever was decided before. id is the id of the binding; empty if it is
// gone. It returns when to look again; zero for not at all.
func (r Recaller) Decide(ctx context.Context, binding client.ObjectKey, id string, keeps ...string) (time.Duration, error) {
	works, err := r.Leaving(ctx, binding)
	if err != nil {
		return 0, err
	}
	var after time.Duration
	for _, w := range works {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace); !ok || slices.Contains(keeps, cluster) {
			continue
		}
		former := id != "" && bindings.IDOf(w) != id
		away, back, err := r.away(ctx, w)
		if err != nil {
			return 0, err
		}
		value := ""
		if former && (away || back && w.Annotations[workv1alpha2.WantedAgainAnnotation] != "") {
			value = undecided
		}
		if err := r.annotate(ctx, w, value); err != nil {
			return 0, err
		}
		if next := r.pause(w); former && (after == 0 || next < after) {
			after = next
		}
	}
	return after, nil
}

// Blocked reports whether a Work is being deleted and has the condition DeletionBlocked, other than as it is recalled.
func Blocked(w *workv1alpha1.Work) bool {
	why := blockedBy(w)
	return why != "" && why != workv1alpha1.WorkWantedAgainReason
}

// Released reports whether the removal of a Work is recalled, and the execution loop says that it removes nothing any more.
func Released(w *workv1alpha1.Work) bool {
	return staleremoval.Recalled(w) && blockedBy(w) == workv1alpha1.WorkWantedAgainReason
}

// blockedBy is the reason of the condition DeletionBlocked of a Work that is being deleted; empty if it is not so.
func blockedBy(w *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if w.DeletionTimestamp.IsZero() || c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// pause is the time before it is looked again at a Work that is being deleted: it grows with the time that this takes.
func (r Recaller) pause(w *workv1alpha1.Work) time.Duration {
	return min(max(soon, r.Clock.Since(w.DeletionTimestamp.Time)/4), late)
}

// away reports whether the cluster of a Work is away, or just back.
func (r Recaller) away(ctx context.Context, w *workv1alpha1.Work) (away, back bool, err error) {
	name, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
	if !ok {
		return false, false, nil
	}
	c, found, err := r.Cluster(ctx, name)
	if err != nil || !found {
		return false, false, err
	}
	return failover.Away(c), !failover.JustBackUntil(c, r.Clock.Now()).IsZero(), nil
}

// Keep has what a Work that is being deleted was to remove stay in its cluster.
func (r Recaller) Keep(ctx context.Context, w *workv1alpha1.Work) error {
	return r.annotate(ctx, w, wanted)
}

// LetGo takes that back: it goes.
func (r Recaller) LetGo(ctx context.Context, w *workv1alpha1.Work) error {
	return r.annotate(ctx, w, "")
}

// logMessage returns what is logged once the annotation has a value.
func logMessage(value string) string {
	switch value {
	case wanted:
		return "what a work could not remove is wanted again: it stays"
	case undecided:
		return "what a work could not remove may be wanted again: it stays until that is known"
	default:
		return "what a work could not remove is not wanted after all: it goes"
	}
}

// annotate brings the annotation on a Work to a value.
func (r Recaller) annotate(ctx context.Context, w *workv1alpha1.Work, value string) error {
	if w.Annotations[workv1alpha2.WantedAgainAnnotation] == value {
		return nil
	}
	var set any = value
	if value == "" {
		set = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": w.UID, "annotations": map[string]any{workv1alpha2.WantedAgainAnnotation: set}, // of this Work, not of a later one of its name
	}})
	if err != nil {
		return fmt.Errorf("recall the work %s: %w", client.ObjectKeyFromObject(w), err)
	}
	annotated := w.DeepCopy()
	switch err := r.Hub.Patch(ctx, annotated, client.RawPatch(types.MergePatchType, patch)); {
	case bindings.IsStale(err):
		return nil
	case err != nil:
		return fmt.Errorf("recall the work %s: %w", client.ObjectKeyFromObject(w), err)
	}
	r.Written.Wrote(annotated)
	log.FromContext(ctx).Info(logMessage(value), "namespace", w.Namespace, "work", w.Name)
	return nil
}

// objectOf returns the object of a Work; nil if it does not have exactly one. An override
// may have given it another name meanwhile.
func objectOf(w *workv1alpha1.Work) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	if len(w.Spec.Workload.Manifests) != 1 || json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &out.Object) != nil || out.Object == nil {
		return nil
	}
	return out
}

// named identifies an object in a cluster.
func named(obj *unstructured.Unstructured) [4]string {
	kind := obj.GroupVersionKind().GroupKind()
	return [4]string{kind.Group, kind.Kind, obj.GetNamespace(), obj.GetName()}
}
