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
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/execution/outcome"
)

// Refusal says that a deletion would take others' objects along.
type Refusal struct {
	title    string // of what is to be deleted
	contents string
	err      error // why nobody knows what is there; nil if it is known
	// waits is where what is waited for lies, and explain the command that says what one of it waits for; empty
	// where something of others is there, and nothing of this hub that stays.
	waits, explain string
}

// Error says what would go, and how to have it go all the same.
func (r *Refusal) Error() string {
	const annotation = workv1alpha2.AllowCascadeAnnotation
	if r.err != nil {
		return fmt.Sprintf("%s is not deleted in the cluster before it is known what would go with it: %v; to delete it all the same, annotate this Work with %s=true",
			r.title, r.err, annotation)
	}
	if r.Waits() {
		return fmt.Sprintf("%s goes once what this control plane has %s in the cluster has left: %s. See what that waits for: %s", r.title, r.waits, r.contents, r.explain)
	}
	return fmt.Sprintf("%s is not deleted in the cluster, as what is not of a template that goes, too, would go with it: %s. "+
		"Annotate this Work with %s=true to delete all of it, or set spec.preserveResourcesOnDeletion to leave all of it", r.title, r.contents, annotation)
}

// Waits reports whether nobody need say anything: it goes once what this hub has there has left.
func (r *Refusal) Waits() bool { return r.waits != "" }

// Unwrap returns why nobody knows what is there; nil if it is known.
func (r *Refusal) Unwrap() error { return r.err }

// Allowed reports whether whoever deletes has allowed that all may go with it.
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
	Standing hubclaim.Standing
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
	var own own
	found, err := missed(ctx, member, r.Kind, r.Key, func(kind schema.GroupKind, obj metav1.Object) bool {
		return g.leaves(ctx, r, kind, obj) || own.add(ctx, g, r, kind, obj)
	})
	if err == nil && own.none() && len(found) > cascade.Most { // it was looked no further
		_, err = missed(ctx, member, r.Kind, r.Key, func(kind schema.GroupKind, obj metav1.Object) bool { own.add(ctx, g, r, kind, obj); return true })
	}
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
		return nil
	case err != nil:
		return &Refusal{title: r.Title, err: err}
	case !own.none():
		return own.refusal(r)
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
	work := g.workOf(ctx, r, obj)
	if work == nil || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || volumes.Stays(kind, work) {
		return false
	}
	return r.Leaving || !work.DeletionTimestamp.IsZero()
}

// workOf returns the Work of this hub that an object in a member is of; nil where it is of none that is there.
func (g *Guard) workOf(ctx context.Context, r *Removal, obj metav1.Object) *workv1alpha1.Work {
	notes := obj.GetAnnotations()
	if obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != workv1alpha2.ManagedByKarmadaLabelValue || notes[workv1alpha2.WorkNamespaceAnnotation] != r.Work.Namespace {
		return nil
	}
	work := &workv1alpha1.Work{}
	err := g.hub.Get(ctx, client.ObjectKey{Namespace: r.Work.Namespace, Name: notes[workv1alpha2.WorkNameAnnotation]}, work, client.UnsafeDisableDeepCopy)
	says := hubclaim.Ownership{Hub: notes[workv1alpha2.HubAnnotation], Work: obj.GetLabels()[workv1alpha2.WorkPermanentIDLabel]}
	if err != nil || !r.Standing.MayRemove(says, work.Labels[workv1alpha2.WorkPermanentIDLabel]) {
		return nil
	}
	return work
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
	refusal := (*Refusal)(nil)
	switch {
	case errors.As(why, &refusal) && refusal.Waits():
		return workv1alpha1.WorkHoldsOwnReason
	case refusal != nil:
		return workv1alpha1.WorkHoldsOthersReason
	case outcome.IsTerminating(why):
		return workv1alpha1.WorkTerminatingReason
	default:
		return workv1alpha1.WorkDeletionFailedReason
	}
}
