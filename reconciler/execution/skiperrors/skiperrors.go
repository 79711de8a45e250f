// Package skiperrors has the errors of objects that are skipped, as nothing may be sent to them: a namespace that belongs
// to somebody else, a change during a hold, and an object that is
// being deleted in the member.
//
// In go what was found and of which object; out come errors. Those that are no failures of
// a Work can be distinguished from others. The package calls no API.
package skiperrors

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
)

// What would be done to an object if there were no hold.
const (
	Make    = "make"
	Change  = "change"
	SetBack = "set back"
)

// Held is the error of a change that a hold keeps from being made.
type Held struct {
	// Verb is what would be done, and Title names the object.
	Verb, Title string
}

// Error returns the text from which the plan of a hold is read.
func (h *Held) Error() string { return workv1alpha1.WorkHeldPrefix + h.Verb + " " + h.Title }

// IsHeld reports whether err is a *Held.
func IsHeld(err error) bool { return errors.As(err, new(*Held)) }

// AsItIs says that a namespace in the cluster belongs to somebody else and is left as it is. That is no failure:
// objects can be created in it.
type AsItIs struct {
	// Found is a text about the namespace and its owner.
	Found string
}

func (a *AsItIs) Error() string {
	return a.Found + workv1alpha1.WorkAsItIsSuffix
}

// IsAsItIs reports whether err is an *AsItIs.
func IsAsItIs(err error) bool { return errors.As(err, new(*AsItIs)) }

// leaving says that a namespace is being deleted in the cluster that no watch shows to the Work.
type leaving struct{ error }

// waiting says that an object is made by itself once one is gone that is being deleted in the cluster.
type waiting struct{ error }

// IsWaiting reports whether err says that an object is made by itself, once another one is gone that is being deleted in the
// cluster.
func IsWaiting(err error) bool { return errors.As(err, new(*waiting)) || errors.As(err, new(*leaving)) }

// Within returns the error for an object that cannot be made, as its namespace is being deleted in the cluster: IsWaiting holds
// for it. Other errors are returned as they are.
func Within(title, namespace string, err error) error {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	return &leaving{fmt.Errorf("Namespace %s is being deleted in the cluster: %s is made once it is gone; if it stays, look at its finalizers there", namespace, title)}
}

// Text returns the message of the condition Applied for the errors of a Work's manifests, some of which are nil, or no failures.
func Text(of []error) string {
	failed := slices.DeleteFunc(slices.Clone(of), func(err error) bool { return err == nil || IsAsItIs(err) })
	text := egress.Message(utilerrors.NewAggregate(failed))
	if !slices.ContainsFunc(failed, func(err error) bool { return !IsWaiting(err) }) {
		return rollup.WaitsPrefix + text
	}
	return fmt.Sprintf("Failed to apply all manifests (%d/%d): %s", len(of)-len(failed), len(of), text)
}

// No watch has objects of others. One in the way is read again after
// untilGone if it is being deleted, and after untilAsked otherwise.
const (
	untilGone  = 5 * time.Second
	untilAsked = 30 * time.Second
)

// Again returns the pause before looking again at an object of others that was left alone; zero
// for errors that have the usual back-off.
func Again(err error) time.Duration {
	switch {
	case errors.As(err, new(*leaving)):
		return untilGone
	case IsAsItIs(err):
		return untilAsked
	}
	return 0
}

// Taken returns the error for an object of others that has the name of one that would be sent. by is the identity of
// the hub that it belongs to, and empty for none. For a namespace it is an *AsItIs, unless goes says that
// the namespace is being deleted.
func Taken(title, by string, isNamespace, goes bool) error {
	if isNamespace && goes {
		return &leaving{Kept(title, "", "", true, false, "")}
	}
	found, next := title+" already exists in the cluster and is not managed by Flotilla", "set conflictResolution to Overwrite in the policy to take it over, with what it holds, or give one of the two another name"
	if by != "" {
		found, next = fmt.Sprintf("%s in the cluster belongs to the hub with the identity %.64s", title, by), "have that hub let go of it, or set conflictResolution to Overwrite in the policy"
	}
	if isNamespace {
		return &AsItIs{Found: found}
	}
	return fmt.Errorf("%s: %s", found, next)
}

// Kept returns the error for an object that is left as it is: nil, unless it is being
// deleted in the cluster. keeps is what blocks its deletion, such as a finalizer; empty if that is not known, and
// IsWaiting then holds for the error. sent and wanted are the hashes of the manifest that was sent, and of the present one. reported says that drift is
// only reported, so that an object with the sent manifest is not created again.
func Kept(title, sent, wanted string, leaving, reported bool, keeps string) error {
	title += " is being deleted in the cluster"
	if keeps != "" {
		title += ", " + keeps
	}
	next := "its latest version is made once it is gone"
	switch {
	case !leaving:
		return nil
	case sent == "":
		next = "it is made once it is gone"
	case sent == wanted && reported:
		return fmt.Errorf("%s, and drift is left as it is: nothing makes it anew before it changes here", title)
	case sent == wanted:
		next = "it is made anew once it is gone"
	}
	if keeps != "" {
		return fmt.Errorf("%s: %s", title, next)
	}
	return &waiting{fmt.Errorf("%s: %s; if it stays, look at its finalizers there", title, next)}
}

// Recalled is why a Work that is being deleted does not end: what it made is wanted again.
type Recalled struct{}

func (*Recalled) Error() string { return staleremoval.Stays }

// IsRecalled reports whether err says that what a Work made is wanted again.
func IsRecalled(err error) bool { return errors.As(err, new(*Recalled)) }

// Terminating says that an object is being deleted in the cluster, and is still
// there.
type Terminating struct {
	// Title is its name for people, and Keeps a text about what keeps it there; empty if that is not
	// known.
	Title, Keeps string
}

func (t *Terminating) Error() string {
	return t.Title + " is being deleted in the cluster" + cmp.Or(t.Keeps, " and still there")
}

// IsTerminating reports whether err is a *Terminating.
func IsTerminating(err error) bool { return errors.As(err, new(*Terminating)) }

// Lingers returns the error for an object that is being deleted, with what keeps it. live is the object in
// the cluster; left are the remaining objects of its kind, if it is a CustomResourceDefinition.
func Lingers(title string, live *unstructured.Unstructured, left []string) *Terminating {
	out := &Terminating{Title: title}
	if blocked := cascade.BlockedByKind(left, live.GetFinalizers()); blocked != "" {
		out.Keeps = ", " + blocked
	} else if within := remains(live); within != "" {
		out.Keeps = ": " + within
	}
	return out
}

// remains returns what a namespace's status says about what is still in it; empty for other kinds.
func remains(live *unstructured.Unstructured) string {
	var namespace corev1.Namespace
	if live.GetKind() != "Namespace" || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &namespace) != nil {
		return ""
	}
	return cascade.Remaining(&namespace)
}
