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

// adapt makes a command of kubectl one of ours, with all that are below it: it
// returns its errors instead of ending the process, ends when the user wants it
// to, and speaks of this program in its examples.
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

// fatal is how kubectl ends.
type fatal struct {
	message string
	code    int
}

// guard runs what would end the process when it fails, and returns its error. in is the flag
// of the namespace that it looks in.
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

// error is what the message says, in the form of our errors. in is the flag of the namespace
// of the call.
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

// noPrinter and noMode are the forms in which kubectl says that it knows no such -o.
var (
	noPrinter = regexp.MustCompile(`^unable to match a printer suitable for the output format "(.*)", allowed formats are: (\S+)$`)
	noMode    = regexp.MustCompile(`^unexpected -o output mode: (.*)\. We only support '-o (\w+)'`)
)

// wrongOutput says what -o may say, if a message is about that; nil if not.
func wrongOutput(message string) error {
	for _, form := range []*regexp.Regexp{noPrinter, noMode} {
		if found := form.FindStringSubmatch(message); found != nil {
			return command.Output(found[1], strings.Split(found[2], ",")...)
		}
	}
	return nil
}

// unanswered are the forms in which kubectl says that no server answers.
var unanswered = []*regexp.Regexp{
	regexp.MustCompile(`^The connection to the server (\S+) was refused`),
	regexp.MustCompile(`failed to download openapi: \w+ "(https?://[^/"]+)[^"]*": (?:.*; if you choose)`),
	regexp.MustCompile(`^Unable to connect to the server: (.*)$`),
}

// unreachable returns which server does not answer, if a message says so.
func unreachable(message string) (string, bool) {
	for _, form := range unanswered {
		if found := form.FindStringSubmatch(message); found != nil {
			return found[1], true
		}
	}
	return "", false
}

// wrongCalls are parts of the messages by which kubectl says that it was called
// wrongly.
var wrongCalls = []string{
	"' for help and examples", "must specify", "must be specified", "is required", "resource(s) were provided, but no name", "at least one ",
	"unknown shorthand flag", "invalid argument", "Unexpected args", "cannot be used with", "can not be used with", "mutually exclusive",
	"resource name may not be empty", "there is no need to specify a resource type", "Invalid dry-run value", "invalid dry-run value", "name must be specified",
}

// patches are what kubectl says about a patch that was refused: all of it.
var patches = regexp.MustCompile(`(?s)(applying|patching with) ?(patch)?:\n.*\nto:\n.*?\nfor: `)

// contents are what servers repeat of objects and patches that do not fit.
var contents = regexp.MustCompile(`(?s)(Invalid value: )"map\[.*\]"|(got )&value\..*\}`)

// discreet leaves contents out of a message: they may be those of a Secret.
func discreet(message string) string {
	return contents.ReplaceAllString(patches.ReplaceAllString(message, "change "), "${1}${2}(not shown)")
}
