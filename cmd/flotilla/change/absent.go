package change

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// gone is how kubectl says that a server does not have an object: at the end of a line, and
// without a type.
var gone = regexp.MustCompile(`(?:^|\s)([a-z][a-z0-9.-]*) "[^"]*" not found$`)

// notFound is how such a line begins.
const notFound = "Error from server (NotFound): "

// absent says what to do next, if all that a message is about are objects that the control
// plane does not have; nil if not. in is the flag of the namespace that they were looked for in.
func absent(in, message string) error {
	var lines, kinds []string
	for line := range strings.Lines(message) {
		line = strings.TrimSpace(strings.TrimPrefix(line, notFound))
		found := gone.FindStringSubmatch(line)
		if found == nil {
			return nil
		}
		lines = append(lines, line)
		if !slices.Contains(kinds, found[1]) {
			kinds = append(kinds, found[1])
		}
	}
	if slices.Equal(kinds, []string{"namespaces"}) {
		return errors.New(discreet(strings.Join(lines, "; ")) + ": flotilla get namespaces lists what there is")
	}
	listing, _ := fleet.Listing(kinds, in)
	return errors.New(discreet(strings.Join(lines, "; ")) + ": " + listing)
}

// inNamespace is the flag by which the namespace of a call is asked for, after a space. What
// files name may be in any.
func inNamespace(cmd *cobra.Command, f *fleet.Flags) string {
	files := cmd.Flags().Lookup("filename")
	switch {
	case f.Namespace != "":
		return " -n " + f.Namespace
	case files != nil && files.Changed:
		return " -A"
	default:
		return ""
	}
}
