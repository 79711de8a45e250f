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

// Root returns a root command with only the commands of one package, and with the flags that
// all commands have.
func Root(commands func(*fleet.Flags) []*cobra.Command) *cobra.Command {
	root := &cobra.Command{Use: "flotilla"}
	f := &fleet.Flags{}
	f.AddTo(root.PersistentFlags())
	f.AddConnectionTo(root.PersistentFlags())
	f.Complete(root)
	root.AddCommand(commands(f)...)
	// cobra would add the flags of the process itself, and write to them while other calls
	// read them. So it gets copies.
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

// String returns the whole result as golden files show it.
func (s Result) String() string {
	return fmt.Sprintf("%s--- stderr\n%s--- exit code %d\n", s.Out, s.Err, s.Code)
}

// To returns the result after the command line, as a shell shows it, for golden files with
// several calls.
func (s Result) To(line string) string {
	return fmt.Sprintf("$ flotilla %s\n%s%sexit code %d\n\n", line, s.Out, s.Err, s.Code)
}

// All returns the parts of the result.
func (s Result) All() (code int, out, errOut string) { return s.Code, s.Out, s.Err }

// Run runs a command with arguments and standard input.
func Run(ctx context.Context, root *cobra.Command, in string, args ...string) Result {
	out, errOut := Prepare(root, in, args...)
	code := command.Run(ctx, root)
	return Result{Code: code, Out: out.String(), Err: errOut.String()}
}

// Prepare sets the arguments and standard input of a command. When it runs, it prints to out
// and errOut.
func Prepare(root *cobra.Command, in string, args ...string) (out, errOut *Output) {
	out, errOut = &Output{}, &Output{}
	root.SetArgs(args)
	root.SetIn(strings.NewReader(in))
	root.SetOut(out)
	root.SetErr(errOut)
	return out, errOut
}

// Output collects what is printed. It is safe for concurrent use, for example by goroutines
// that a call leaves running. The zero value is empty.
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

// String returns everything printed so far.
func (o *Output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}
