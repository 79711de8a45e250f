package inspection

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

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

// execObject returns the argument that names the pod, or the object with pods; nil for files.
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
