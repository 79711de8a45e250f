package inspection

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// streams returns the streams of the call.
func streams(cmd *cobra.Command) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), ErrOut: cmd.ErrOrStderr()}
}

// report prints a warning for each server that did not answer. It returns an error if there are
// any, or if no server of the scope has an object that was requested by name.
func report(f *fleet.Flags, scope *fleet.Scope, errOut io.Writer, answers []fleet.Answer[found]) error {
	if err := alike(answers); err != nil {
		return err
	}
	var away []string
	var missed []error
	for _, a := range answers {
		if a.Err != nil {
			away = append(away, a.Cluster)
			warn(errOut, a.Cluster, a.Err)
			continue
		}
		missed = append(missed, a.Value.absent...)
	}
	if len(away) > 0 {
		return unanswered(away, len(answers))
	}
	var nowhere []error
	for i, err := range missed {
		if slices.ContainsFunc(missed[:i], like(err)) {
			continue
		}
		if !slices.ContainsFunc(answers, func(a fleet.Answer[found]) bool { return !a.Value.lacks(err) }) {
			nowhere = append(nowhere, nobodyHas(f, scope, err, answers))
		}
	}
	return errors.Join(nowhere...)
}

// like returns a function that reports whether an error has the same text.
func like(err error) func(error) bool {
	return func(e error) bool { return e.Error() == err.Error() }
}

// lacks reports whether a server lacks the object of err: it returned the same error, or it has
// nothing because it does not serve the kind.
func (f found) lacks(err error) bool {
	if slices.ContainsFunc(f.absent, like(err)) {
		return true
	}
	return apierrors.IsNotFound(err) && len(f.infos) == 0 && len(f.absent) > 0 && !slices.ContainsFunc(f.absent, apierrors.IsNotFound)
}

// alike returns the error that all servers returned with the same text: then the call is wrong.
// If there is a single server, the error names it.
func alike(answers []fleet.Answer[found]) error {
	for _, a := range answers {
		if a.Err == nil || a.Err.Error() != answers[0].Err.Error() {
			return nil
		}
	}
	switch len(answers) {
	case 0:
		return nil
	case 1:
		return of(answers[0].Cluster, answers[0].Err)
	default:
		return fleet.Describe(answers[0].Err)
	}
}

// nobodyHas returns an error that no server has the requested object.
func nobodyHas(f *fleet.Flags, scope *fleet.Scope, err error, answers []fleet.Answer[found]) error {
	if len(answers) == 1 {
		return described(f, answers[0].Cluster, err)
	}
	if fleet.IsUnknownKind(err) {
		return fmt.Errorf("none of %d servers knows the kind: flotilla api-resources -C CLUSTER lists those of one (%w)", len(answers), err)
	}
	servers := make([]string, len(answers))
	for i := range answers {
		servers[i] = answers[i].Cluster
	}
	if hint := nowhereOf(f.Namespace, scope, servers, err); hint != nil {
		return hint
	}
	return fmt.Errorf("%w %s: check the name and the namespace", err, places(servers))
}

// warn prints in one line why a server did not answer.
func warn(errOut io.Writer, server string, err error) {
	_, _ = fmt.Fprintf(errOut, "warning: %s\n", oneLine(of(server, err)))
}

// of adds the name of the server to an error, unless it already contains that.
func of(server string, err error) error {
	err = fleet.DescribeOf(server, err)
	name := "cluster " + server
	switch {
	case server == fleet.Hub:
		name = "the control plane"
	case strings.Contains(err.Error(), name), strings.Contains(err.Error(), fmt.Sprintf("clusters.cluster.karmada.io %q", server)):
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// unanswered returns an error that the output is not complete.
func unanswered(away []string, of int) error {
	if len(away) == of {
		return fmt.Errorf("no answer from any of %d servers: the warnings above say why", of)
	}
	return fmt.Errorf("no answer from %d of %d servers (%s): what is shown is from the others", len(away), of, strings.Join(away, ", "))
}

// isAbsent reports whether an error means that a server has no such object or kind.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || fleet.IsUnknownKind(err)
}

// flatten returns the errors that err is made of, each once.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	var aggregate utilerrors.Aggregate
	if !errors.As(err, &aggregate) {
		return []error{err}
	}
	all := utilerrors.Flatten(aggregate).Errors()
	return slices.CompactFunc(all, func(a, b error) bool { return a.Error() == b.Error() })
}

func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
