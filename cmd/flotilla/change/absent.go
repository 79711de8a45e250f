package change

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// gone matches a line of kubectl about an object that the server does not have. The error has
// no type of its own.
var gone = regexp.MustCompile(`(?:^|\s)([a-z][a-z0-9.-]*) "[^"]*" not found$`)

// notFound is the beginning of such a line.
const notFound = "Error from server (NotFound): "

// absent returns an error with the next step if a message is only about objects that the
// control plane does not have; nil if not. in is the flag for the namespace of the search.
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

// inNamespace returns the flag, after a space, to list the namespaces of a call. Objects that
// are named in files may be in any.
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
