package applier

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Reasons for which a set is refused before anything is written.
const (
	// ReasonUnknownKind says that the hub serves no such kind.
	ReasonUnknownKind = "UnknownKind"
	// ReasonNamespaceNotFound says that a namespace neither exists nor comes
	// with the revision.
	ReasonNamespaceNotFound = "NamespaceNotFound"
	// ReasonAccountNotFound says that a Secret is to hold the token of a service account that neither exists
	// nor comes with the revision.
	ReasonAccountNotFound = "ServiceAccountNotFound"
	// ReasonNamespaceNotSet says that an object needs a namespace and names none.
	ReasonNamespaceNotSet = "NamespaceNotSet"
	// ReasonObjectTooLarge says that the hub could not store an object.
	ReasonObjectTooLarge = "ObjectTooLarge"
	// ReasonInvalidObject says that the hub refuses an object's content.
	ReasonInvalidObject = "InvalidObject"
	// ReasonImmutableField says that an object could only change by being
	// deleted and created again.
	ReasonImmutableField = "ImmutableField"
	// ReasonForbidden says that the identity in use may not do this.
	ReasonForbidden = "Forbidden"
	// ReasonProtected says that a label protects an object from deletion by anybody.
	ReasonProtected = "Protected"
)

// Finding is why one object cannot be applied.
type Finding struct {
	// Object is "Kind/namespace/name".
	Object string
	// Reason is one of the reasons above.
	Reason string
	// Message says what is wrong and what to do.
	Message string
}

// Refusal lists why a set was not applied. Nothing of the set was written, except
// perhaps the definitions without which the rest could not be checked.
type Refusal struct{ Findings []Finding }

// Reason returns the reason of the first finding.
func (e *Refusal) Reason() string { return e.Findings[0].Reason }

// named is how many findings a message spells out.
const named = 3

func (e *Refusal) Error() string {
	var texts []string
	for _, f := range e.Findings[:min(named, len(e.Findings))] {
		texts = append(texts, f.Object+": "+f.Message)
	}
	text := strings.Join(texts, "; ")
	if more := len(e.Findings) - named; more > 0 {
		text += "; and " + moreObjects(more)
	}
	return text
}

// moreObjects returns "1 more object", or "2 more objects".
func moreObjects(n int) string {
	if n == 1 {
		return "1 more object"
	}
	return fmt.Sprintf("%d more objects", n)
}

// refuse returns a *Refusal in a stable order, or nil.
func refuse(findings []Finding) error {
	if len(findings) == 0 {
		return nil
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(a.Object, b.Object) })
	return &Refusal{Findings: findings}
}

func finding(id inventory.ID, reason, format string, args ...any) *Finding {
	return &Finding{Object: inventory.Describe(id), Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// findingOf turns the server's answer into a finding. It returns nil for an error that may
// pass by itself.
func findingOf(id inventory.ID, err error) *Finding {
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), workv1alpha2.DeletionProtectionLabelKey):
		return finding(id, ReasonProtected, "its label %s=%s protects it from deletion, whoever asks: take the label off first",
			workv1alpha2.DeletionProtectionLabelKey, workv1alpha2.DeletionProtectionAlways)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return finding(id, inventory.ReasonNamespaceTerminating, "the namespace %s is being deleted: wait until it is gone", id.Namespace)
	case apierrors.IsForbidden(err):
		return finding(id, ReasonForbidden, "%s", plain(err))
	case apierrors.IsRequestEntityTooLargeError(err):
		return finding(id, ReasonObjectTooLarge, "%s: split it", plain(err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), isSchemaError(err):
		return finding(id, ReasonInvalidObject, "%s", fieldsFirst(plain(err)))
	default:
		return nil
	}
}

// isSchemaError recognises the answer to an apply of fields that the kind does
// not have, which the server gives as an internal error.
func isSchemaError(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

// ownedInGoneVersion recognises the answer to an apply of an object whose managed fields
// are in a version that its definition does not serve any more.
func ownedInGoneVersion(desired, observed *unstructured.Unstructured, err error) bool {
	if !strings.Contains(err.Error(), "request to convert CR to an invalid group/version") {
		return false
	}
	patch, err := ssa.PatchMigrateToVersion(observed, desired.GetAPIVersion())
	return err == nil && len(patch) > 0
}

// undeclared is what the server says of a field that a kind does not have.
var undeclared = regexp.MustCompile(`(\.\S*?)([^.\s:]+): field not declared in schema`)

// fieldsFirst returns the text with the fields that it is about at its beginning, so that they survive
// when the message is shortened. What it drops names the object, which the finding does already.
func fieldsFirst(text string) string {
	if _, fields, schema := strings.Cut(text, "failed to create typed patch object"); schema {
		if _, rest, named := strings.Cut(fields, "): "); named {
			fields = rest
		}
		fields = strings.TrimPrefix(strings.TrimPrefix(fields, ": "), "errors: ")
		fields = strings.ReplaceAll(fields, " in schema .", " in schema; .")
		return undeclared.ReplaceAllString(fields, "unknown field $2 at $1$2")
	}
	if _, fields, invalid := strings.Cut(text, " is invalid: "); invalid && fields != "" {
		return fields
	}
	return text
}

// plain returns the server's text on one line.
func plain(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
