package commandtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// Root is the command line with the commands of one package alone, and with the
// flags that all commands have.
func Root(commands func(*fleet.Flags) []*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	f.Complete(root)
	root.AddCommand(commands(f)...)
	// What cobra would do with the flags of the process itself, and write to them
	// while other calls read them.
	pflag.CommandLine.VisitAll(func(flag *pflag.Flag) {
		if root.PersistentFlags().Lookup(flag.Name) == nil {
			own := *flag
			root.PersistentFlags().AddFlag(&own)
		}
	})
	return root
}

// Result is what a call printed, and its exit code.
type Result struct {
	Code     int
	Out, Err string
}

// String is all of it, as golden files show it.
func (s Result) String() string {
	return fmt.Sprintf("%s--- stderr\n%s--- exit code %d\n", s.Out, s.Err, s.Code)
}

// To is all of it behind the line that was called, as a shell shows it: golden files
// with several calls have it.
func (s Result) To(line string) string {
	return fmt.Sprintf("$ flotilla %s\n%s%sexit code %d\n\n", line, s.Out, s.Err, s.Code)
}

// All is all of it, part by part.
func (s Result) All() (code int, out, errOut string) { return s.Code, s.Out, s.Err }

// Run calls a command line with words, and with what comes from standard input.
func Run(ctx context.Context, root *cobra.Command, in string, args ...string) Result {
	out, errOut := Prepare(root, in, args...)
	code := command.Run(ctx, root)
	return Result{Code: code, Out: out.String(), Err: errOut.String()}
}

// Prepare has a command line take words and what comes from standard input. What it
// prints once it runs goes to out and errOut.
func Prepare(root *cobra.Command, in string, args ...string) (out, errOut *Output) {
	out, errOut = &Output{}, &Output{}
	root.SetArgs(args)
	root.SetIn(strings.NewReader(in))
	root.SetOut(out)
	root.SetErr(errOut)
	return out, errOut
}

// Output is what was printed up to now. It may be read while it is written, and be
// written by what a call leaves running. The zero value is empty.
type Output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

// String is all of it.
func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
