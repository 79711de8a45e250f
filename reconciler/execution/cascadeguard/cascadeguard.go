package cascadeguard

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
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
)

// Refusal says that a deletion would also delete objects of others.
type Refusal struct {
	title    string // of what would be deleted
	contents string
	err      error // why it is not known what is there; nil if it is known
	// waits says where the objects of this hub are that have to leave first, such as "in it", and explain is the
	// command that explains one of them. Both are empty if only objects of others are there.
	waits, explain string
}

// Error names what would be deleted, and how to allow that.
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

// Waits reports whether the refusal passes by itself, once the objects that this hub has there have left.
func (r *Refusal) Waits() bool { return r.waits != "" }

// Unwrap returns why it is not known what is there; nil if it is known.
func (r *Refusal) Unwrap() error { return r.err }

// Allowed reports whether the object has the annotation which allows that all is deleted along with it.
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
	// Title is its name for people.
	Title string
	// Work is the Work that deletes it.
	Work *workv1alpha1.Work
	// Desired is the object in the Work's manifest; nil if it has none any more.
	Desired metav1.Object
	// Standing is this hub's claim on the member, by which objects count as its own.
	Standing hubclaim.Standing
	// Leaving says that the cluster is being unjoined.
	Leaving bool
}

// containsOthers reports whether objects of a kind may contain objects of others.
func containsOthers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} || Defines(kind)
}

// Judge returns a *Refusal if something must not be deleted now, or if it cannot find out whether it
// may. A StatefulSet is separated from its volume claims first; any other error means that it is not yet.
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
	if err == nil && own.none() && len(found) > cascade.Most { // the search ended early: look for our own in the rest
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

// leaves reports whether an object in a member is this hub's, and is about to be deleted anyway: its Work
// exists, does not preserve it, and is being deleted, or the cluster is being
// unjoined. An object without a Work is an orphan, which
// stays until people prune it. A volume claim stays unless its Work may delete it.
func (g *Guard) leaves(ctx context.Context, r *Removal, kind schema.GroupKind, obj metav1.Object) bool {
	work := g.workOf(ctx, r, obj)
	if work == nil || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || volumes.Stays(kind, work) {
		return false
	}
	return r.Leaving || !work.DeletionTimestamp.IsZero()
}

// workOf returns the Work of this hub that an object in a member belongs to; nil if it belongs to none that exists. The
// name in an annotation is no evidence: the hub's and the Work's IDs have to match, too.
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

// Status returns the status of a Work with the reason why it is not deleted yet. known reports whether the Work's
// status has that already.
func Status(work *workv1alpha1.Work, why error, now time.Time) (status *workv1alpha1.WorkStatus, known bool) {
	status = work.Status.DeepCopy()
	changed := meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: reason(why),
		Message: excerpt.Message(egress.Message(why), mostMessage), ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(now),
	})
	return status, !changed
}

// reason returns the reason of the condition DeletionBlocked.
func reason(why error) string {
	refusal := (*Refusal)(nil)
	switch {
	case errors.As(why, &refusal) && refusal.Waits():
		return workv1alpha1.WorkHoldsOwnReason
	case refusal != nil:
		return workv1alpha1.WorkHoldsOthersReason
	case skiperrors.IsTerminating(why):
		return workv1alpha1.WorkTerminatingReason
	case skiperrors.IsRecalled(why):
		return workv1alpha1.WorkWantedAgainReason
	case deletionrecheck.Is(why):
		return deletionrecheck.Reason
	default:
		return workv1alpha1.WorkDeletionFailedReason
	}
}
