package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/cascade"
)

// With a namespace goes all that is in it, and with the definition of a kind all
// objects of the kind, whoever put them there. A Work that is being deleted waits
// while its namespace or definition holds what is not its own hub's to remove, until
// somebody says that it may go, moves it, or has the namespace left in place.

// cascadeError says that a deletion would take others' objects along.
type cascadeError struct {
	manifest *manifest
	contents string
	err      error // why nobody knows what is there; nil if it is known
}

func (e *cascadeError) Error() string {
	const word = workv1alpha2.AllowCascadeAnnotation
	if e.err != nil {
		return fmt.Sprintf("%s is not deleted in the cluster before it is known what would go with it: %v; to delete it all the same, annotate this Work with %s=true",
			e.manifest.title(), e.err, word)
	}
	return fmt.Sprintf("%s is not deleted in the cluster, as what is not of a template that goes, too, would go with it: %s. "+
		"Annotate this Work with %s=true to delete all of it, or set spec.preserveResourcesOnDeletion to leave all of it", e.manifest.title(), e.contents, word)
}

func (e *cascadeError) Unwrap() error { return e.err }

// cascades says whether whoever deletes has said that all may go with it.
func cascades(obj metav1.Object) bool {
	return obj.GetAnnotations()[workv1alpha2.AllowCascadeAnnotation] == "true"
}

// warden keeps what others have in members from going with what the Works of a lane
// delete.
type warden struct{ *lane }

// holdsOthers says whether objects of a kind hold those of others.
func holdsOthers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} || kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}

// spare says whether the object of a manifest is to stay, because the cluster leaves
// and others have something there. It errs while the object must not be deleted.
func (l warden) spare(ctx context.Context, s *state, m *manifest) (stays bool, err error) {
	err = l.judge(ctx, s, m)
	var held *cascadeError
	switch {
	case !errors.As(err, &held):
		return false, err
	case !s.cluster.DeletionTimestamp.IsZero():
		log.FromContext(ctx).Info("The cluster keeps what others have there", "reason", held.Error())
		return true, nil
	case s.work.DeletionTimestamp.IsZero():
		return false, held // the Work's own status tells
	default:
		return false, l.awaitWord(ctx, s, held)
	}
}

// judge returns a *cascadeError if the object of a manifest must not be deleted now.
// It asks the member, for namespaces and definitions alone.
func (l warden) judge(ctx context.Context, s *state, m *manifest) error {
	if !holdsOthers(m.gvk.GroupKind()) || cascades(s.work) {
		return nil
	}
	for _, own := range l.ledger.manifests(s.work) {
		if !own.same(*m) {
			continue
		}
		if desired, err := own.object(s.work); err == nil && cascades(desired) {
			return nil
		}
	}
	inside, ok := s.member.(*members.Member)
	if !ok {
		return nil // no member that holds anything
	}
	found, err := members.Contents(ctx, inside, m.gvk, m.key, func(obj metav1.Object) bool { return l.leaves(ctx, s, obj) })
	switch {
	case apierrors.IsNotFound(err) || errors.Is(err, members.ErrNotServed):
		return nil
	case err != nil:
		if err := l.unreachable(err); errors.As(err, new(*blocked)) {
			return err
		}
		return &cascadeError{manifest: m, err: err}
	case len(found) == 0:
		return nil
	}
	return &cascadeError{manifest: m, contents: cascade.Describe(found)}
}

// leaves says whether an object in a member is this hub's, and goes: its Work is
// being deleted, or gone, or the whole cluster leaves.
func (l warden) leaves(ctx context.Context, s *state, obj metav1.Object) bool {
	notes := obj.GetAnnotations()
	hub := notes[workv1alpha2.HubAnnotation]
	if obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != workv1alpha2.ManagedByKarmadaLabelValue ||
		notes[workv1alpha2.WorkNamespaceAnnotation] != s.key.Namespace || hub != "" && hub != s.member.Standing().Hub {
		return false
	}
	if !s.cluster.DeletionTimestamp.IsZero() {
		return true
	}
	work := &workv1alpha1.Work{}
	err := l.hub.Get(ctx, client.ObjectKey{Namespace: s.key.Namespace, Name: notes[workv1alpha2.WorkNameAnnotation]}, work, unsafeGet)
	return apierrors.IsNotFound(err) || err == nil && !work.DeletionTimestamp.IsZero()
}

// slowly is how soon a Work that waits for somebody's word is looked at again, at
// first: what goes by itself goes in a moment.
const slowly = time.Second

// awaitWord has a Work that is being deleted wait, and says so in its status, once.
func (l warden) awaitWord(ctx context.Context, s *state, why *cascadeError) error {
	status := s.work.Status.DeepCopy()
	before := meta.FindStatusCondition(s.work.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	condition := metav1.Condition{
		Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Reason: workv1alpha1.WorkHoldsOthersReason,
		Message: ownership.Clip(why.Error(), mostMessage), ObservedGeneration: s.work.Generation, LastTransitionTime: metav1.NewTime(l.options.Clock.Now()),
	}
	wait := &blocked{cause: cause{event: onRetry}, after: max(slowly, l.line.retries.When(s.key)), err: why}
	if !meta.SetStatusCondition(&status.Conditions, condition) {
		return wait
	}
	patch, err := hub.ReplaceStatus(status)
	if err != nil {
		return fmt.Errorf("work %s: %w", s.key, err)
	}
	updated := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := l.hub.Status().Patch(ctx, updated, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		if errors.Is(err, hub.ErrAway) || apierrors.IsNotFound(err) {
			return wait
		}
		return fmt.Errorf("write the status of work %s: %w", s.key, err)
	}
	l.wrote.Wrote(updated)
	if before == nil {
		log.FromContext(ctx).Info("Waits for somebody's word", "reason", why.Error())
		l.recorder.Event(s.work, corev1.EventTypeWarning, workv1alpha1.EventReasonDeletionBlocked, ownership.Clip(why.Error(), mostEvent))
	}
	return wait
}
