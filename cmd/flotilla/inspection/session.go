package inspection

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/interrupt"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

// podTimeout is how long a pod may take to run that somebody wants to go into.
const podTimeout = time.Minute

// terminalTimeout is how long a signal waits for kubectl to give the terminal back.
const terminalTimeout = time.Second

const whichCluster = "the member that has the pod; default is the only one that has it"

func newExecCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	options := &exec.ExecOptions{Executor: &exec.DefaultRemoteExecutor{}}
	cmd := &cobra.Command{
		Use:   "exec (POD | KIND/NAME) [-c CONTAINER] [-it] -- COMMAND [ARGUMENT...]",
		Short: "Run a command in a container of a member",
		Long: `Run a command in a container of a member. The exit code is that of the command.

Without --cluster the pod is looked for in all members; there must be one that has
it.`,
		Example: `  flotilla exec web-7d4b9 -n shop -- date
  flotilla exec deployment/web -n shop -C eu-1 -it -- sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := execObject(cmd, args, options)
			if err != nil {
				return command.Usage(err)
			}
			ctx := cmd.Context()
			cluster, err := locate(ctx, f, &scope, cmd.ErrOrStderr(), object)
			if err != nil {
				return err
			}
			terminal := newTerminal()
			options.IOStreams, options.InterruptParent = streams(cmd), terminal.handler()
			if err := options.Complete(f.Server(cluster, 0), cmd, args, cmd.ArgsLenAtDash()); err != nil {
				return completed(f, cluster, err)
			}
			if err := options.Validate(); err != nil {
				return command.Usage(err)
			}
			return described(f, cluster, terminal.during(ctx, options.Run))
		},
	}
	cmd.ValidArgsFunction = completePods(f, &scope)
	flags := cmd.Flags()
	scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers)
	cmdutil.AddJsonFilenameFlag(flags, &options.Filenames, "that names the pod")
	addSessionFlags(cmd, &options.StreamOptions)
	return cmd
}

// execObject returns what is to be gone into.
func execObject(cmd *cobra.Command, args []string, options *exec.ExecOptions) ([]string, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) > 1:
		return nil, errors.New("-- is missing before the command: flotilla exec POD -- COMMAND")
	case dash < 0 || len(args) == dash:
		return nil, errors.New("COMMAND is missing: flotilla exec POD -- COMMAND")
	case dash == 0 && len(options.Filenames) == 0:
		return nil, errors.New("POD is missing: flotilla exec POD -- COMMAND")
	}
	return args[:min(dash, 1)], nil
}

func newAttachCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	options := attach.NewAttachOptions(genericiooptions.IOStreams{})
	cmd := &cobra.Command{
		Use:   "attach (POD | KIND/NAME) [-c CONTAINER] [-it]",
		Short: "Attach to what runs in a container of a member",
		Long: `Attach to what runs in a container of a member.

Without --cluster the pod is looked for in all members; there must be one that has
it.`,
		Example: `  flotilla attach web-7d4b9 -n shop -C eu-1 -it`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("POD is missing: flotilla attach web-7d4b9 -n shop"))
			}
			ctx := cmd.Context()
			options.Resources = args
			if err := checkAttach(options, cmd); err != nil {
				return command.Usage(err)
			}
			cluster, err := locate(ctx, f, &scope, cmd.ErrOrStderr(), args)
			if err != nil {
				return err
			}
			terminal := newTerminal()
			options.IOStreams, options.InterruptParent = streams(cmd), terminal.handler()
			if err := options.Complete(f.Server(cluster, 0), cmd, args); err != nil {
				return completed(f, cluster, err)
			}
			return described(f, cluster, terminal.during(ctx, options.Run))
		},
	}
	cmd.ValidArgsFunction = completePods(f, &scope)
	scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers)
	addSessionFlags(cmd, &options.StreamOptions)
	cmd.Flags().StringVar(&options.DetachKeys, "detach-keys", "ctrl-p,ctrl-q", "keys that leave the container running and end this command")
	return cmd
}

func checkAttach(options *attach.AttachOptions, cmd *cobra.Command) (err error) {
	if options.GetPodTimeout, err = cmdutil.GetPodRunningTimeoutFlag(cmd); err != nil {
		return err
	}
	return options.Validate()
}

// addSessionFlags adds what exec and attach have in common.
func addSessionFlags(cmd *cobra.Command, options *exec.StreamOptions) {
	flags := cmd.Flags()
	cmdutil.AddPodRunningTimeoutFlag(cmd, podTimeout)
	cmdutil.AddContainerVarFlags(cmd, &options.ContainerName, "")
	flags.BoolVarP(&options.Stdin, "stdin", "i", false, "pass standard input on")
	flags.BoolVarP(&options.TTY, "tty", "t", false, "standard input is a terminal")
	flags.BoolVarP(&options.Quiet, "quiet", "q", false, "print nothing but what comes from the container")
}

// terminal is given back when a session ends, or a signal ends it.
type terminal struct{ back chan struct{} }

func newTerminal() terminal { return terminal{back: make(chan struct{})} }

// handler lets kubectl put the terminal right when a signal comes, and leaves it to
// us to end the program.
func (t terminal) handler() *interrupt.Handler {
	return interrupt.New(func(os.Signal) {}, func() { close(t.back) })
}

// during runs a session until it ends or ctx does. kubectl hands no context on, so
// what it runs is left behind, but not before the terminal is put right.
func (t terminal) during(ctx context.Context, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case <-t.back:
	case <-done:
	case <-time.After(terminalTimeout): // it was never taken
	}
	return ctx.Err()
}
