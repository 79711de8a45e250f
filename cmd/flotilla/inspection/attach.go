package inspection

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/attach"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

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
