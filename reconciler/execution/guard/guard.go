package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/claims"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
)

// Refusal says that a deletion would take others' objects along.
type Refusal struct {
	title    string // of what is to be deleted
	contents string
	err      error // why nobody knows what is there; nil if it is known
}

// Error says what would go, and how to have it go all the same.
func (r *Refusal) Error() string {
	const annotation = workv1alpha2.AllowCascadeAnnotation
	if r.err != nil {
		return fmt.Sprintf("%s is not deleted in the cluster before it is known what would go with it: %v; to delete it all the same, annotate this Work with %s=true",
			r.title, r.err, annotation)
	}
	return fmt.Sprintf("%s is not deleted in the cluster, as what is not of a template that goes, too, would go with it: %s. "+
		"Annotate this Work with %s=true to delete all of it, or set spec.preserveResourcesOnDeletion to leave all of it", r.title, r.contents, annotation)
}

// Unwrap returns why nobody knows what is there; nil if it is known.
func (r *Refusal) Unwrap() error { return r.err }

// Allowed reports whether whoever deletes has said that all may go with it.
func Allowed(obj metav1.Object) bool {
	return obj.GetAnnotations()[workv1alpha2.AllowCascadeAnnotation] == "true"
}

// Guard judges deletions.
type Guard struct{ hub client.Reader }

// New returns a Guard that reads Works from the hub.
func New(hub client.Reader) *Guard { return &Guard{hub: hub} }

// Removal is what a Work is about to delete in a member.
type Removal struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
	// Title is what people call it.
	Title string
	// Work deletes it.
	Work *workv1alpha1.Work
	// Desired is the object as the Work asks for it; nil if it does so no more.
	Desired metav1.Object
	// Standing is what the hub may conclude of the member.
	Standing claims.Standing
	// Leaving says that the whole cluster leaves the hub.
	Leaving bool
}

// containsOthers reports whether objects of a kind contain those of others.
func containsOthers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} || Defines(kind)
}

// Judge returns a *Refusal if something must not be deleted now. What cannot be
// looked at must not. A set that makes claims is parted from them first; another error says that it is not yet.
func (g *Guard) Judge(ctx context.Context, edge any, r *Removal) error {
	if volumes.MakesClaims(r.Kind.GroupKind()) {
		return part(ctx, edge, r)
	}
	if !containsOthers(r.Kind.GroupKind()) || Allowed(r.Work) || r.Desired != nil && Allowed(r.Desired) {
		return nil
	}
	member, ok := edge.(Member)
	if !ok {
		return &Refusal{title: r.Title, err: errors.New("it cannot be looked into")}
	}
	found, err := missed(ctx, member, r.Kind, r.Key, func(kind schema.GroupKind, obj metav1.Object) bool { return g.leaves(ctx, r, kind, obj) })
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
		return nil
	case err != nil:
		return &Refusal{title: r.Title, err: err}
	case len(found) == 0:
		return nil
	}
	return &Refusal{title: r.Title, contents: cascade.Describe(found)}
}

// leaves reports whether an object in a member is this hub's, and goes: its Work, which
// is there and does not leave it in place, is being deleted, or the whole cluster
// leaves. Names alone are no evidence, and an object without a Work is an orphan, which
// stays until somebody says otherwise. So does a claim whose Work may not take it along.
func (g *Guard) leaves(ctx context.Context, r *Removal, kind schema.GroupKind, obj metav1.Object) bool {
	notes := obj.GetAnnotations()
	if obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != workv1alpha2.ManagedByKarmadaLabelValue || notes[workv1alpha2.WorkNamespaceAnnotation] != r.Work.Namespace {
		return false
	}
	work := &workv1alpha1.Work{}
	err := g.hub.Get(ctx, client.ObjectKey{Namespace: r.Work.Namespace, Name: notes[workv1alpha2.WorkNameAnnotation]}, work, client.UnsafeDisableDeepCopy)
	if err != nil || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || volumes.Stays(kind, work) {
		return false
	}
	says := claims.Ownership{Hub: notes[workv1alpha2.HubAnnotation], Work: obj.GetLabels()[workv1alpha2.WorkPermanentIDLabel]}
	return (r.Leaving || !work.DeletionTimestamp.IsZero()) && r.Standing.MayRemove(says, work.Labels[workv1alpha2.WorkPermanentIDLabel])
}

// mostMessage is how many bytes of a message fit into a condition.
const mostMessage = 4096

// Status returns the status of a Work with why it does not go, and whether it says so
// already.
func Status(work *workv1alpha1.Work, why error, now time.Time) (status *workv1alpha1.WorkStatus, known bool) {
	status = work.Status.DeepCopy()
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: reason(why),
		Message: excerpt.Message(egress.Message(why), mostMessage), ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	return status, !changed
}

// reason is that of a condition which says why a Work does not go.
func reason(why error) string {
	switch {
	case errors.As(why, new(*Refusal)):
		return workv1alpha1.WorkHoldsOthersReason
	case outcome.IsTerminating(why):
		return workv1alpha1.WorkTerminatingReason
	default:
		return workv1alpha1.WorkDeletionFailedReason
	}
}
