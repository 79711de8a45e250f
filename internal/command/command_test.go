package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
		"a call that works":                  {args: []string{"do", "x"}},
		"a call that does not work":          {args: []string{"do", "x"}, err: errors.New("the disk\n\n\tis full\n"), code: 1, says: "error: the disk; is full\n"},
		"a list of what is wrong":            {args: []string{"do", "x"}, err: errors.Join(nil, fmt.Errorf("drain: %w", command.Lines(errors.New("2 stay:\n  web\n  db")))), code: 1, says: "error: drain: 2 stay:\n  web\n  db\n"},
		"a command elsewhere that fails":     {args: []string{"do", "x"}, err: elsewhere(3), code: 3, says: "error: it ended with 3\n"},
		"a command that answers by its code": {args: []string{"do", "x"}, err: fmt.Errorf("asked: %w", command.Answer(1)), code: 1},
		"a call that the command finds bad":  {args: []string{"do", "x"}, err: command.Usage(errors.New("x is no name")), code: 2, says: "error: x is no name\n"},
		"an argument that is missing":        {args: []string{"do"}, code: 2, says: "error: NAME is missing: program do NAME [flags]\n"},
		"an argument too much":               {args: []string{"do", "x", "y"}, code: 2, says: "error: \"y\" is too much: program do NAME [flags]\n"},
		"a flag that is not there":           {args: []string{"do", "--nope"}, code: 2, says: "error: unknown flag: --nope; program do --help lists the flags\n"},
		"help of what is there":              {args: []string{"help", "do"}},
		"help of what is not there":          {args: []string{"help", "nope"}, code: 2, says: "error: unknown command \"nope\" for \"program\": program --help lists them\n"},
		"help of what a group does not have": {args: []string{"help", "group", "nope"}, code: 2, says: "error: unknown command \"nope\" for \"program group\": program group --help lists them\n"},
		"a call that the user interrupted":   {ctx: canceled, args: []string{"do", "x"}, err: context.Canceled, code: 130},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := &cobra.Command{Use: "program"}
			do := &cobra.Command{Use: "do NAME", Args: command.Exactly("NAME"), RunE: func(*cobra.Command, []string) error { return tc.err }}
			do.Flags().Bool("flag", false, "")
			root.AddCommand(do, group())
			root.SetOut(io.Discard)
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

// group is a command that has others.
func group() *cobra.Command {
	out := &cobra.Command{Use: "group", RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	out.AddCommand(&cobra.Command{Use: "one", RunE: func(*cobra.Command, []string) error { return nil }})
	return out
}

func TestOutput(t *testing.T) {
	cases := map[string]struct {
		value   string
		allowed []string
		want    string
	}{
		"one that is allowed":         {"json", []string{"json", "yaml"}, ""},
		"none":                        {"", []string{"json"}, ""},
		"one that is not":             {"wide", []string{"json"}, `there is no -o "wide" here: it is json`},
		"one that is not, of several": {"xml", []string{"json", "yaml", "wide"}, `there is no -o "xml" here: it is json, yaml or wide`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := command.Output(tc.value, tc.allowed...); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := listener.Addr().String()
	_, busy := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	busy = fmt.Errorf("set up the loops: %w", busy)
	other := errors.New("the disk is full")
	const reported = "bind: address already in use"
	cases := map[string]struct {
		err   error
		flags map[string]string
		want  string
	}{
		"the flag that the address is of is named": {busy, map[string]string{"health": address, "metrics": "127.0.0.1:1", "off": "0"}, "listen tcp " + address + ": " + reported + "; choose another --health"},
		"two flags that say the same are both":     {busy, map[string]string{"health": address, "metrics": address}, "listen tcp " + address + ": " + reported + "; choose another --health and --metrics"},
		"an address that no flag says is left":     {busy, map[string]string{"health": "127.0.0.1:1"}, "set up the loops: listen tcp " + address + ": " + reported},
		"another error is left":                    {other, map[string]string{"health": address}, "the disk is full"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := command.Taken(tc.err, tc.flags); got.Error() != tc.want || !errors.Is(tc.err, errors.Unwrap(got)) && got != tc.err {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if err := command.Taken(nil, nil); err != nil {
		t.Errorf("of nothing it says %v", err)
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

// TestFree: all addresses that others listen at are named at once.
func TestFree(t *testing.T) {
	var taken []string
	for range 2 {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		taken = append(taken, listener.Addr().String())
	}
	if err := command.Free(t.Context(), map[string]string{"health": "127.0.0.1:0", "metrics": "0", "profiles": ""}); err != nil {
		t.Errorf("of free ones: %v", err)
	}
	const reported = ": bind: address already in use; choose another --"
	want := "listen tcp " + taken[0] + reported + "health\nlisten tcp " + taken[1] + reported + "metrics"
	if err := command.Free(t.Context(), map[string]string{"health": taken[0], "metrics": taken[1]}); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %q", err, want)
	}
}
