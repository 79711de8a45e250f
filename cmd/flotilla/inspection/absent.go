package inspection

import (
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// described is fleet.DescribeOf, with what to do next where that is known better here: it
// names the namespace of the call, and asks the clusters for what the control plane has not.
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
// are listed; empty is that of the context. It returns nil if the error is another.
func absentIn(namespace, server string, err error) error {
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
	in, at := "", " -C "+server
	if namespace != "" {
		in = " -n " + namespace
	}
	hub := server == "" || server == fleet.Hub
	if hub {
		at = ""
	}
	if err.Error() == noPodInTime {
		return fmt.Errorf("no pod of it runs there, nor has begun to in time: flotilla get pods%s%s lists what there is", in, at)
	}
	var said apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &said) {
		return nil
	}
	status := said.Status()
	if status.Details == nil || status.Details.Name == "" || status.Details.Kind == "" || status.Details.Kind == "namespaces" {
		return nil
	}
	kind, what := status.Details.Kind, "what there is"
	if group := status.Details.Group; group != "" {
		kind += "." + group
	}
	if hub && !hubAlone.MatchString(kind) {
		at, what = " -s "+fleet.ScopeAll, "what there is, on the control plane and in the clusters; -C names one to ask"
	}
	return fmt.Errorf("%w: flotilla get %s%s%s lists %s", &apierrors.StatusError{ErrStatus: status}, kind, in, at, what)
}

// noPodInTime is how kubectl says that what it was told has no pod; it has no type.
const noPodInTime = "timed out waiting for the condition"

// hubAlone are kinds that no cluster of a fleet is asked for.
var hubAlone = regexp.MustCompile(`\.(karmada\.io|flotilla\.io|toolkit\.fluxcd\.io)$`)
