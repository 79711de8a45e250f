package fleet

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// meanwhile is an error that came of somebody who did the same at the same time.
type meanwhile struct {
	text  string
	cause error
}

func (m *meanwhile) Error() string { return m.text }
func (m *meanwhile) Unwrap() error { return m.cause }

// Meanwhile says of an error what to do where it came of somebody else who works on the same
// thing at the same time, such as "cluster east": something was made or changed between the
// look and the write. Other errors, and nil, it returns as they are.
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
