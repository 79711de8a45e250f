package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/internal/command"
)

func TestRun(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := map[string]struct {
		ctx  context.Context
		args []string
		err  error
		code int
		says string
	}{
		"a call that works":                 {args: []string{"do", "x"}},
		"a call that does not work":         {args: []string{"do", "x"}, err: errors.New("the disk\n\n\tis full\n"), code: 1, says: "error: the disk; is full\n"},
		"a command elsewhere that fails":    {args: []string{"do", "x"}, err: elsewhere(3), code: 3, says: "error: it ended with 3\n"},
		"a call that the command finds bad": {args: []string{"do", "x"}, err: command.Usage(errors.New("x is no name")), code: 2, says: "error: x is no name\n"},
		"an argument that is missing":       {args: []string{"do"}, code: 2, says: "error: NAME is missing: program do NAME [flags]\n"},
		"an argument too much":              {args: []string{"do", "x", "y"}, code: 2, says: "error: \"y\" is too much: program do NAME [flags]\n"},
		"a flag that is not there":          {args: []string{"do", "--nope"}, code: 2, says: "error: unknown flag: --nope; program do --help lists the flags\n"},
		"a call that the user interrupted":  {ctx: canceled, args: []string{"do", "x"}, err: context.Canceled, code: 130},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "program"}
			do := &cobra.Command{Use: "do NAME", Args: command.Exactly("NAME"), RunE: func(*cobra.Command, []string) error { return tc.err }}
			do.Flags().Bool("flag", false, "")
			root.AddCommand(do)
			root.SetArgs(tc.args)
			var stderr bytes.Buffer
			root.SetErr(&stderr)
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			if code := command.Run(ctx, root); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.says, stderr.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
		})
	}
}

// elsewhere is the exit code of a command that ran in a container.
type elsewhere int

func (e elsewhere) Error() string   { return fmt.Sprintf("it ended with %d", int(e)) }
func (e elsewhere) ExitStatus() int { return int(e) }

// Kubernetes' servers bring a flag of this name for the whole process.
func TestVersion(t *testing.T) {
	if pflag.Lookup("version") == nil {
		pflag.String("version", "", "a flag that takes a value")
	}
	root := &cobra.Command{Use: "program", Version: "v1.2.3", Run: func(*cobra.Command, []string) {}}
	root.SetArgs([]string{"--version"})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	if code := command.Run(t.Context(), root); code != command.Done || out.String() != "program version v1.2.3\n" {
		t.Errorf("exit code %d, output %q", code, out.String())
	}
}
