// Package command runs the programs' cobra commands the way scripts expect: one
// clear line on standard error when something is wrong, and a stable exit code.
//
// In go a command; out comes an exit code. It defines no command itself but version, which
// programs share.
package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of all programs.
const (
	// Done is the code of a call that worked.
	Done = 0
	// Failed is the code of a call that was right and did not work.
	Failed = 1
	// Wrong is the code of a call that was wrong before anything was tried.
	Wrong = 2
	// Interrupted is the code of a call that the user ended.
	Interrupted = 130
)

// usageError is a call that was wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage marks err as the caller's fault: the exit code is Wrong.
func Usage(err error) error { return &usageError{err: err} }

// Answer is an exit code that answers what a command was asked, such as whether something differs. It is no fault: nothing
// is printed.
type Answer int

// Error implements error.
func (a Answer) Error() string { return fmt.Sprintf("the answer is exit code %d", int(a)) }

// Run executes the command and returns the exit code. An error becomes one line, but for those of Lines.
func Run(ctx context.Context, cmd *cobra.Command) int {
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(fmt.Errorf("%w; %s --help lists the flags", err, cmd.CommandPath()))
	})
	if cmd.Version != "" {
		// Before cobra looks for one: what Kubernetes registers for the whole
		// process takes a value, and cobra cannot do with that.
		short := "v"
		if cmd.Flags().ShorthandLookup(short) != nil {
			short = "" // it is how much to log
		}
		cmd.Flags().BoolP("version", short, false, "version for "+cmd.Name())
	}
	checkHelp(cmd)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return Done
	case ctx.Err() != nil && (errors.Is(err, context.Canceled) || strings.Contains(err.Error(), context.Canceled.Error())): // libraries keep the text alone
		return Interrupted
	}
	if answer := Answer(0); errors.As(err, &answer) {
		return int(answer)
	}
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "error: %s\n", text(err))
	var usage *usageError
	if errors.As(err, &usage) || isCobraUsage(err) {
		return Wrong
	}
	var elsewhere interface{ ExitStatus() int }
	if errors.As(err, &elsewhere) && elsewhere.ExitStatus() != Done {
		return elsewhere.ExitStatus() // of a command that ran in a container
	}
	return Failed
}

// checkHelp has the command help refuse the name of a command that there is not: cobra prints
// the help of all.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Args = func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 && found.HasSubCommands() {
				err = fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
			}
			return err
		}
	}
}

// Exactly is cobra's ExactArgs with names: it says what is missing.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usage(fmt.Errorf("%s is missing: %s", names[len(args)], cmd.UseLine()))
		case len(args) > len(names):
			return Usage(fmt.Errorf("%q is too much: %s", args[len(names)], cmd.UseLine()))
		}
		return nil
	}
}

// Output says what is wrong with the value of -o; nil for one that is allowed, and for none.
func Output(value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return Usage(fmt.Errorf("there is no -o %q here: it is %s", value, Alternatives(allowed)))
}

// Alternatives writes words as a sentence has them: json, yaml or wide.
func Alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Taken says of an error of an address that another program listens at which flag chooses
// another. Flags hold addresses by the names of their flags. Other errors, and nil, it returns
// as they are.
func Taken(err error, flags map[string]string) error {
	var op *net.OpError
	if !errors.Is(err, syscall.EADDRINUSE) || !errors.As(err, &op) || op.Addr == nil {
		return err
	}
	_, taken, _ := net.SplitHostPort(op.Addr.String())
	var names []string
	for name, address := range flags {
		if _, port, _ := net.SplitHostPort(address); port == taken {
			names = append(names, "--"+name)
		}
	}
	if len(names) == 0 {
		return err
	}
	slices.Sort(names)
	return fmt.Errorf("%w; choose another %s", op, strings.Join(names, " and ")) // without what libraries were about
}

// Free errs where addresses that are to be listened at cannot be, all of them at once: before
// anything is done that could not be done again. Flags are those of Taken; an address that is
// empty or 0 is off.
func Free(ctx context.Context, flags map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		address := flags[name]
		if address == "" || address == "0" {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			errs = append(errs, Taken(err, map[string]string{name: address}))
			continue
		}
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

// oneLine folds what is spread over several lines.
func oneLine(err error) string {
	var lines []string
	for _, line := range strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	text, meant, misspelt := strings.Cut(strings.Join(lines, "; "), suggests)
	if found := unknownCommand.FindStringSubmatch(text); !misspelt && found != nil {
		return text + ": " + found[1] + " --help lists them"
	}
	if !misspelt {
		return text
	}
	return text + ": is " + strings.ReplaceAll(meant, "; ", " or ") + " meant?"
}

// unknownCommand matches cobra's error for a word that is no command of a program, or of a group.
var unknownCommand = regexp.MustCompile(`^unknown command ".*" for "([^"]+)"$`)

// suggests is how cobra begins to name the commands that a misspelt one may be.
const suggests = "; Did you mean this?; "

// isCobraUsage recognizes cobra's own complaints, which carry no type.
func isCobraUsage(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "unknown command") || strings.HasPrefix(text, "required flag") ||
		strings.HasPrefix(text, "accepts ") || strings.HasPrefix(text, "requires ")
}
