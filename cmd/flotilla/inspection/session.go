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

// podTimeout is how long a session waits for its pod to run.
const podTimeout = time.Minute

// terminalTimeout is how long a signal waits for kubectl to restore the terminal.
const terminalTimeout = time.Second

const whichCluster = "the member that has the pod; default is the only one that has it"

// addSessionFlags adds the common flags of exec and attach.
func addSessionFlags(cmd *cobra.Command, options *exec.StreamOptions) {
	flags := cmd.Flags()
	cmdutil.AddPodRunningTimeoutFlag(cmd, podTimeout)
	cmdutil.AddContainerVarFlags(cmd, &options.ContainerName, "")
	flags.BoolVarP(&options.Stdin, "stdin", "i", false, "pass standard input on")
	flags.BoolVarP(&options.TTY, "tty", "t", false, "standard input is a terminal")
	flags.BoolVarP(&options.Quiet, "quiet", "q", false, "print nothing but what comes from the container")
}

// terminal knows when kubectl has restored the terminal after a signal.
type terminal struct{ back chan struct{} }

func newTerminal() terminal { return terminal{back: make(chan struct{})} }

// handler makes kubectl restore the terminal on a signal without ending the program.
func (t terminal) handler() *interrupt.Handler {
	return interrupt.New(func(os.Signal) {}, func() { close(t.back) })
}

// during runs a session until it or ctx ends. kubectl takes no context, so the session is left
// running when ctx ends, but only once the terminal is restored or terminalTimeout has passed.
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
