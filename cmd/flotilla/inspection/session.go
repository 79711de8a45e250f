package inspection

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/exec"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/interrupt"
)

// podTimeout is how long a pod may take to run that somebody wants to go into.
const podTimeout = time.Minute

// terminalTimeout is how long a signal waits for kubectl to give the terminal back.
const terminalTimeout = time.Second

const whichCluster = "the member that has the pod; default is the only one that has it"

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
