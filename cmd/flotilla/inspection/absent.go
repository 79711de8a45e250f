package inspection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
	in, at := inNamespace(namespace), " -C "+server
	hub := server == "" || server == fleet.Hub
	if hub {
		at = ""
	}
	if err.Error() == noPodInTime {
		return fmt.Errorf("no pod of it runs there, nor has begun to in time: flotilla get pods%s%s lists what there is", in, at)
	}
	kind := kindOf(err)
	if kind == "" || kind == "namespaces" {
		return nil
	}
	if !hub {
		return fmt.Errorf("%w: flotilla get %s%s%s lists what there is", bare(err), kind, in, at)
	}
	listing, everywhere := fleet.Listing([]string{kind}, in)
	if everywhere {
		listing += "; -C names one to ask"
	}
	return fmt.Errorf("%w: %s", bare(err), listing)
}

// nowhereOf says that none of several servers has an object, and how what they have is
// listed. It returns nil if the error is another.
func nowhereOf(namespace string, scope *fleet.Scope, servers []string, err error) error {
	kind := kindOf(err)
	if kind == "" {
		return nil
	}
	in, at := inNamespace(namespace), scope.Words()
	if kind == "namespaces" {
		in = ""
	}
	if at == "" { // where that is not the control plane, it is the clusters
		at = " -s " + fleet.ScopeMembers
	}
	return fmt.Errorf("%w %s: flotilla get %s%s%s lists what there is", bare(err), places(servers), kind, in, at)
}

// kindOf is fleet.Absent; what has no metrics is looked for among what could have them.
func kindOf(err error) string {
	return strings.TrimSuffix(fleet.Absent(err), ".metrics.k8s.io")
}

// places names servers, of which there may be many: "on the control plane, nor in any of 2
// clusters (east, west)".
func places(servers []string) string {
	clusters := slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return s == fleet.Hub })
	named := clusters
	rest := ""
	if len(clusters) > mostNamed {
		named, rest = clusters[:mostNamed], fmt.Sprintf(" and %d more", len(clusters)-mostNamed)
	}
	in := fmt.Sprintf("in any of %d clusters (%s%s)", len(clusters), strings.Join(named, ", "), rest)
	if len(clusters) == 1 {
		in = "in cluster " + clusters[0]
	}
	if len(clusters) < len(servers) {
		return "on the control plane, nor " + in
	}
	return in
}

// mostNamed is how many clusters a message names.
const mostNamed = 5

// inNamespace is the flag that names a namespace, after a space; empty for that of the
// context.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// bare is a server's message, without what was wrapped around it.
func bare(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status.Status()}
}

// noPodInTime is how kubectl says that the object it was given has no pod; it has no type.
const noPodInTime = "timed out waiting for the condition"
