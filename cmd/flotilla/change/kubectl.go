package change

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// adapt adapts a command of kubectl and its subcommands to this program: it returns errors
// instead of ending the process, stops when the context ends, and its examples name this
// program.
func adapt(cmd *cobra.Command, f *fleet.Flags, late *lateStreams) {
	cmd.Long, cmd.Example = renamed(cmd.Long), renamed(cmd.Example)
	cmd.DisableFlagsInUseLine = true
	if run := cmd.Run; run != nil {
		cmd.Run = nil
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			late.take(cmd)
			return fleet.Until(cmd.Context(), func() error { return guard(inNamespace(cmd, f), func() { run(cmd, args) }) })
		}
	}
	for _, sub := range cmd.Commands() {
		adapt(sub, f, late)
	}
}

var kubectl = regexp.MustCompile(`\bkubectl\b( |$)`)

func renamed(text string) string { return kubectl.ReplaceAllString(text, program+"$1") }

// fatal has the arguments with which kubectl would end the process.
type fatal struct {
	message string
	code    int
}

// guard runs a function of kubectl that would end the process on failure, and returns the error
// instead. in is the flag for the namespace of the call.
func guard(in string, run func()) (err error) {
	cmdutil.BehaviorOnFatal(func(message string, code int) { panic(fatal{message, code}) })
	defer cmdutil.DefaultBehaviorOnFatal()
	defer func() {
		switch end := recover().(type) {
		case nil:
		case fatal:
			err = end.error(in)
		default:
			panic(end)
		}
	}()
	run()
	return nil
}

// error converts the message into one of our errors. in is the flag for the namespace of the
// call.
func (f fatal) error(in string) error {
	message := strings.TrimSpace(strings.TrimPrefix(f.message, "error: "))
	if message == "" {
		return errors.New("it did not work")
	}
	if where, found := unreachable(message); found {
		return fmt.Errorf("no control plane answers at %s; see whether flotillad serve runs there, or --kubeconfig names the file that leads elsewhere", where)
	}
	if wrong := wrongOutput(message); wrong != nil {
		return wrong
	}
	if missing := absent(in, message); missing != nil {
		return missing
	}
	if unknown := errors.New(message); fleet.IsUnknownKind(unknown) {
		return fleet.Describe(unknown)
	}
	if typed, found := strings.CutPrefix(message, "Error from server: "); found {
		return errors.New(discreet(typed))
	}
	if strings.HasPrefix(message, "Error from server") {
		message = strings.TrimPrefix(message, "Error from server ")
		if reason, rest, ok := strings.Cut(message, "): "); ok {
			return errors.New(discreet(rest) + " (" + strings.TrimPrefix(reason, "(") + ")")
		}
		return errors.New(discreet(message))
	}
	if strings.HasPrefix(message, "You must provide one or more resources") {
		return command.Usage(errors.New("what is meant is missing: name a kind and a name, or files with --filename"))
	}
	err := errors.New(discreet(message))
	for _, sign := range wrongCalls {
		if strings.Contains(message, sign) {
			return command.Usage(err)
		}
	}
	return err
}

// noPrinter and noMode match kubectl's messages about an unknown value of -o.
var (
	noPrinter = regexp.MustCompile(`^unable to match a printer suitable for the output format "(.*)", allowed formats are: (\S+)$`)
	noMode    = regexp.MustCompile(`^unexpected -o output mode: (.*)\. We only support '-o (\w+)'`)
)

// wrongOutput returns an error with the allowed values of -o if a message is about that; nil if
// not.
func wrongOutput(message string) error {
	for _, form := range []*regexp.Regexp{noPrinter, noMode} {
		if found := form.FindStringSubmatch(message); found != nil {
			return command.Output(found[1], strings.Split(found[2], ",")...)
		}
	}
	return nil
}

// unanswered match kubectl's messages about a server that does not answer.
var unanswered = []*regexp.Regexp{
	regexp.MustCompile(`^The connection to the server (\S+) was refused`),
	regexp.MustCompile(`failed to download openapi: \w+ "(https?://[^/"]+)[^"]*": (?:.*; if you choose)`),
	regexp.MustCompile(`^Unable to connect to the server: (.*)$`),
}

// unreachable returns the server that does not answer, if a message is about that.
func unreachable(message string) (string, bool) {
	for _, form := range unanswered {
		if found := form.FindStringSubmatch(message); found != nil {
			return found[1], true
		}
	}
	return "", false
}

// wrongCalls are parts of kubectl's messages about wrong arguments.
var wrongCalls = []string{
	"' for help and examples", "must specify", "must be specified", "is required", "resource(s) were provided, but no name", "at least one ",
	"unknown shorthand flag", "invalid argument", "Unexpected args", "cannot be used with", "can not be used with", "mutually exclusive",
	"resource name may not be empty", "there is no need to specify a resource type", "Invalid dry-run value", "invalid dry-run value", "name must be specified",
}

// patches matches kubectl's message about a refused patch, which contains the whole patch.
var patches = regexp.MustCompile(`(?s)(applying|patching with) ?(patch)?:\n.*\nto:\n.*?\nfor: `)

// contents matches the parts of invalid objects and patches that servers repeat in errors.
var contents = regexp.MustCompile(`(?s)(Invalid value: )"map\[.*\]"|(got )&value\..*\}`)

// discreet removes the contents of objects from a message: they may be those of a Secret.
func discreet(message string) string {
	return contents.ReplaceAllString(patches.ReplaceAllString(message, "change "), "${1}${2}(not shown)")
}
