package inspection

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// described is fleet.DescribeOf, with the namespace of the call in what it says to
// do next: without it, that would look elsewhere than the call did.
func described(f *fleet.Flags, server string, err error) error {
	if hint := absentIn(f.Namespace, server, err); hint != nil {
		return hint
	}
	return fleet.DescribeOf(server, err)
}

// completed is fleet.CompletedOf, in the same way.
func completed(f *fleet.Flags, server string, err error) error {
	if hint := absentIn(f.Namespace, server, err); hint != nil {
		return hint
	}
	return fleet.CompletedOf(server, err)
}

// absentIn says of objects that a server does not have how those of the namespace
// are listed. It returns nil if no namespace was named, or if the error is another.
func absentIn(namespace, server string, err error) error {
	if namespace == "" {
		return nil
	}
	var hints []error
	found := false
	for _, e := range flatten(err) {
		if hint := hintOf(namespace, server, e); hint != nil {
			found = true
			hints = append(hints, hint)
			continue
		}
		hints = append(hints, fleet.DescribeOf(server, e))
	}
	if !found {
		return nil
	}
	return errors.Join(hints...)
}

func hintOf(namespace, server string, err error) error {
	var said apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &said) {
		return nil
	}
	status := said.Status()
	if status.Details == nil || status.Details.Name == "" || status.Details.Kind == "" || status.Details.Kind == "namespaces" {
		return nil
	}
	kind := status.Details.Kind
	if status.Details.Group != "" {
		kind += "." + status.Details.Group
	}
	at := ""
	if server != "" && server != fleet.Hub {
		at = " -C " + server
	}
	return fmt.Errorf("%w: flotilla get %s -n %s%s lists what there is", &apierrors.StatusError{ErrStatus: status}, kind, namespace, at)
}
