package inspection

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// described is fleet.DescribeOf with better advice for missing objects: it names the namespace of
// the call, and suggests the clusters for what the control plane does not have.
func described(f *fleet.Flags, server string, err error) error {
	if hint := absentIn(f.Namespace, server, err); hint != nil {
		return hint
	}
	return fleet.DescribeOf(server, err)
}

// completed is fleet.CompletedOf with the same advice.
func completed(f *fleet.Flags, server string, err error) error {
	if hint := absentIn(f.Namespace, server, err); hint != nil {
		return hint
	}
	return fleet.CompletedOf(server, err)
}

// absentIn explains, for objects that a server does not have, how to list those of the namespace;
// empty means that of the context. It returns nil for other errors.
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

// nowhereOf explains that none of several servers has an object, and how to list what they have.
// It returns nil for other errors.
func nowhereOf(namespace string, scope *fleet.Scope, servers []string, err error) error {
	kind := kindOf(err)
	if kind == "" {
		return nil
	}
	in, at := inNamespace(namespace), scope.Words()
	if kind == "namespaces" {
		in = ""
	}
	if at == "" { // without flags, several servers are the clusters
		at = " -s " + fleet.ScopeMembers
	}
	return fmt.Errorf("%w %s: flotilla get %s%s%s lists what there is", bare(err), places(servers), kind, in, at)
}

// kindOf is fleet.Absent. For metrics it returns the kind of the objects that have them.
func kindOf(err error) string {
	return strings.TrimSuffix(fleet.Absent(err), ".metrics.k8s.io")
}

// places describes servers, of which there may be many: "on the control plane, nor in any of 2
// clusters (east, west)".
func places(servers []string) string {
	clusters := slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return s == fleet.Hub })
	in := fmt.Sprintf("in any of %d clusters (%s)", len(clusters), excerpt.Names(clusters, mostNamed))
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

// inNamespace returns the flag for a namespace, after a space; empty for that of the context.
func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// bare returns a server's error without the text that was wrapped around it.
func bare(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: status.Status()}
}

// noPodInTime is kubectl's error for an object without a pod; it has no type.
const noPodInTime = "timed out waiting for the condition"
