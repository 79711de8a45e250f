package artifacts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// diffElsewhere says which program shows the difference that the arguments of diff ask for, if it is not that of an artifact: with the
// same arguments. program is how this one is called, and ours how it shows that of an artifact.
func diffElsewhere(program, ours string, args []string) error {
	if slices.Contains([]string{"kustomization", "ks"}, args[0]) {
		return fmt.Errorf("the diff of a Kustomization is Flux's, with this control plane: flux diff %s; of an artifact it is %s", inShell(args), ours)
	}
	return fmt.Errorf("the diff of manifests is kubectl's: %s kubectl diff %s; of an artifact it is %s", program, inShell(args), ours)
}

// plain are arguments that a shell takes as they are.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// inShell returns arguments as they are written in a shell, in one line.
func inShell(args []string) string {
	out := make([]string, len(args))
	for n, arg := range args {
		if out[n] = arg; !plain.MatchString(arg) {
			out[n] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return excerpt.Line(strings.Join(out, " "))
}
