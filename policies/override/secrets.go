package override

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
)

// errUnquoted stands for a fault whose text may quote a value.
var errUnquoted = errors.New("what is wrong is not quoted, as text of a Secret is in it")

// sayable are the faults whose own text quotes nothing.
var sayable = []error{
	ErrTooMany, ErrTooLarge, ErrTooMuch, ErrIdentity,
	errNoJSON, errNoYAML, errSeveral, errWhole, errNoObject, errNoManifest, errMissing, errIndex,
	errPath, errNoSuchPath, errNoString, errNoList, errImageLong, errNoImage,
}

// unquoted returns the part of a fault that quotes nothing.
func unquoted(err error) error {
	if n := slices.IndexFunc(sayable, func(known error) bool { return errors.Is(err, known) }); n >= 0 {
		return sayable[n]
	}
	return errUnquoted
}

// holdsSecrets reports whether text of a Secret is in an object, as its annotation says.
func holdsSecrets(obj metav1.Object) bool {
	return obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
}

// redact fills in which policy an error is about, and removes from it what may be text of a Secret: of a policy that
// holds such text the path, and what is quoted; of a manifest that does what is quoted.
func (e *Error) redact(o policyv1alpha1.Override, rule int, manifestHolds bool) {
	e.Policy, e.Rule = nameOf(o), rule
	if !holdsSecrets(o) && !manifestHolds {
		return
	}
	e.Err = unquoted(e.Err)
	if !holdsSecrets(o) {
		return
	}
	e.Path = ""
	if !errors.Is(e.Err, errUnquoted) {
		e.Err = fmt.Errorf("%w; its path and value are not told, as text of a Secret is in it", e.Err)
	}
}
