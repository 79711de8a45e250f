// Package outcome has what is found of an object in a member before anything is sent: a
// namespace that is somebody else's, what is on hold, and an object that is
// being deleted there.
//
// In go what was found and of what; out come errors, of which those that are no failures of
// a Work can be distinguished from others. The package asks nobody, and writes nothing.
package outcome

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/cascade"
)

// What would be done to an object if there were no hold.
const (
	Make    = "make"
	Change  = "change"
	SetBack = "set back"
)

// Held says what would be done to an object if there were no hold.
type Held struct {
	// Verb and Title are what would be done, and to what.
	Verb, Title string
}

// Error says so in the words that the plan of a hold is read from.
func (h *Held) Error() string { return workv1alpha1.WorkHeldPrefix + h.Verb + " " + h.Title }

// IsHeld reports whether err is about what would be done if there were no hold.
func IsHeld(err error) bool { return errors.As(err, new(*Held)) }

// AsItIs says that a namespace is in the cluster that is somebody else's. Nothing is wrong
// with that: what is to be in it finds a place.
type AsItIs struct {
	// Found is whose it is.
	Found string
}

func (a *AsItIs) Error() string {
	return a.Found + workv1alpha1.WorkAsItIsSuffix
}

// IsAsItIs reports whether err is about a namespace that is used as it is.
func IsAsItIs(err error) bool { return errors.As(err, new(*AsItIs)) }

// leaving says that a namespace that is somebody else's is being deleted in its cluster.
type leaving struct{ error }

// An object that is not watched, as it is somebody else's, is looked at again after
// untilGone if it is being deleted, and after untilAsked otherwise.
const (
	untilGone  = 5 * time.Second
	untilAsked = 30 * time.Second
)

// Again returns when to look again at what was left alone, as no watch shows its end; zero
// for what is left to the back-off of a failure.
func Again(err error) time.Duration {
	switch {
	case errors.As(err, new(*leaving)):
		return untilGone
	case IsAsItIs(err):
		return untilAsked
	}
	return 0
}

// Taken says that an object is left alone that has the name of one that is sent, and what to
// do: it is another hub's, by its identity, or nobody's where that is empty. A namespace is
// used as it is, unless goes says that it is being deleted.
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

// Kept says what is wrong with an object that is left as it is: nothing, unless it is being
// deleted in its cluster. Whoever keeps it there, by a finalizer, may take any time; keeps is
// what does, empty where nobody has looked. Reported says that what is sent already is not
// made anew.
func Kept(title, sent, wanted string, leaving, reported bool, keeps string) error {
	why, otherwise := "", "; if it stays, look at its finalizers there"
	if keeps != "" {
		why, otherwise = ", "+keeps, ""
	}
	switch {
	case !leaving:
		return nil
	case sent == "":
		return fmt.Errorf("%s is being deleted in the cluster%s: it is made once it is gone%s", title, why, otherwise)
	case sent == wanted && reported:
		return fmt.Errorf("%s is being deleted in the cluster%s, and drift is left as it is: nothing makes it anew before it changes here", title, why)
	case sent == wanted:
		return fmt.Errorf("%s is being deleted in the cluster%s: it is made anew once it is gone%s", title, why, otherwise)
	}
	return fmt.Errorf("%s is being deleted in the cluster%s: its latest version is made once it is gone%s", title, why, otherwise)
}

// Terminating says that the cluster was asked to delete an object, and that it is still
// there.
type Terminating struct {
	// Title is what people call it, and Keeps what keeps it there; empty where nobody
	// has looked.
	Title, Keeps string
}

func (t *Terminating) Error() string {
	return t.Title + " is being deleted in the cluster" + cmp.Or(t.Keeps, " and still there")
}

// IsTerminating reports whether err is about an object that is being deleted.
func IsTerminating(err error) bool { return errors.As(err, new(*Terminating)) }

// Lingers says what keeps an object that is being deleted, as it is in its cluster. Left are
// the objects of its kind, if it is the definition of one.
func Lingers(title string, live *unstructured.Unstructured, left []string) *Terminating {
	out := &Terminating{Title: title}
	if held := cascade.BlockedByKind(left, live.GetFinalizers()); held != "" {
		out.Keeps = ", " + held
	} else if within := remains(live); within != "" {
		out.Keeps = ": " + within
	}
	return out
}

// remains is what a namespace says of what is still in it; empty for other kinds.
func remains(live *unstructured.Unstructured) string {
	var namespace corev1.Namespace
	if live.GetKind() != "Namespace" || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &namespace) != nil {
		return ""
	}
	return cascade.Remaining(&namespace)
}
