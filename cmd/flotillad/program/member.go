package program

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-io/flotilla/cmd/flotillad/gctuner"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// logLimit is how large a log file may be at the start; a larger one is replaced by a new one.
const logLimit = 16 << 20

// memberGarbage is how many bytes of garbage a member keeps before it collects. It is not
// large, because several members share a machine.
const memberGarbage = 256 << 20

// faultsOnly is a verbosity without what Kubernetes' controllers log about their normal work.
const faultsOnly = -1

// newMemberCommand returns the command that runs a simulated member cluster.
func newMemberCommand() *cobra.Command {
	opts := member.Options{}
	logs := telemetry.LogOptions{Verbosity: faultsOnly}
	cmd := &cobra.Command{
		Use:   "member --name NAME --data-dir DIR",
		Short: "Run a simulated member cluster",
		Long: `Run a simulated member cluster in this process: a real API server, controller manager and scheduler, and
nodes whose pods only say that they run. Pods with an image that starts with fake/ stay without their image.

DIR/kubeconfig has a context NAME for the cluster's administrator and appears when the cluster is ready. A second
start on the same DIR goes on where the first ended, on the same port. SIGTERM stops it. What Kubernetes has to
say goes to DIR/member.log.`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkMember(opts); err != nil {
				return command.Usage(err)
			}
			return runMember(cmd, opts, logs)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.Name, "name", "", "name of the member, a DNS label (required)")
	flags.StringVar(&opts.DataDir, "data-dir", "", "folder that keeps the member; made when missing (required)")
	flags.StringVar(&opts.BindAddress, "bind-address", "127.0.0.1", "IP address to listen on")
	flags.IntVar(&opts.SecurePort, "secure-port", 0, "port of the API server; 0 is the one of the last run, or a free one")
	flags.IntVar(&opts.Nodes, "nodes", 3, "how many nodes the member has at least")
	flags.StringVar(&opts.Node.CPU, "node-cpu", "32", "CPUs of each node")
	flags.StringVar(&opts.Node.Memory, "node-memory", "128Gi", "memory of each node")
	flags.StringVar(&opts.Node.Pods, "node-pods", "110", "how many pods each node takes")
	flags.StringVar(&opts.ServiceCIDR, "service-cidr", "", "IPv4 range of Services; empty is one that follows from the name")
	flags.StringVar(&opts.PodCIDR, "pod-cidr", "", "IPv4 range of pods; empty is one that follows from the name")
	logs.AddFlags(flags)
	return cmd
}

// checkMember returns an error for options without which there is not even a folder for the log.
func checkMember(opts member.Options) error {
	switch {
	case opts.Name == "":
		return errors.New("--name is missing: the cluster is called so, and the context of its kubeconfig")
	case len(validation.IsDNS1123Label(opts.Name)) > 0:
		return fmt.Errorf("--name %q is no name of a cluster: it has at most 63 characters, each a-z, 0-9 or -, the first and last no -", opts.Name)
	case opts.DataDir == "":
		return errors.New("--data-dir is missing: name the folder that keeps the member")
	}
	return nil
}

func runMember(cmd *cobra.Command, opts member.Options, logs telemetry.LogOptions) error {
	out, err := openLog(opts.DataDir, "member.log")
	if err != nil {
		return err
	}
	defer out.Close()
	defer gctuner.Tune(memberGarbage)()
	log, err := logs.Start(out)
	if err != nil {
		return err
	}
	begin := time.Now()
	if !onScreen(cmd.OutOrStdout()) {
		opts.Starting = func() {
			fmt.Fprint(cmd.OutOrStdout(), starting("member "+opts.Name, opts.DataDir, opts.BindAddress, opts.SecurePort, "the port of its last run, or a free one,"))
		}
	}
	opts.Ready = func(at member.Endpoint) {
		debug.FreeOSMemory() // the start needs far more memory, and several members share a machine
		fmt.Fprintf(cmd.OutOrStdout(), "member %s is ready after %.1fs: %s\n", opts.Name, time.Since(begin).Seconds(), at)
	}
	err = member.Run(logr.NewContext(cmd.Context(), log), opts)
	switch {
	case errors.Is(err, member.ErrInvalid):
		return command.Usage(err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; choose another --secure-port", err)
	}
	return err
}
