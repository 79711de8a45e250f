package fleet

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// meanwhile is an error caused by somebody who works on the same object at the same time.
type meanwhile struct {
	text  string
	cause error
}

func (m *meanwhile) Error() string { return m.text }
func (m *meanwhile) Unwrap() error { return m.cause }

// Meanwhile explains a conflict with somebody else who works on the same thing, such as "cluster
// east", at the same time: an object was created or changed between the read and the write. It
// returns other errors, and nil, unchanged.
func Meanwhile(what string, err error) error {
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
		return err
	}
	changed := ""
	if details := statusOf(err).Details; details != nil && details.Name != "" && details.Kind != "" {
		changed = fmt.Sprintf(", and changed %s %s first", details.Kind, details.Name)
	}
	return &meanwhile{fmt.Sprintf("somebody else works on %s at the same time%s: run the same again, it goes on from what is there by then", what, changed), err}
}
