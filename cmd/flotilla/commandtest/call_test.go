package commandtest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// TestCallsSideBySide: calls share nothing, not even the flags of the process, which
// servers of Kubernetes bring along. The race detector sees whether they do.
func TestCallsSideBySide(t *testing.T) {
	if pflag.Lookup("of-the-process") == nil {
		pflag.Bool("of-the-process", false, "")
	}
	commands := func(f *fleet.Flags) []*cobra.Command {
		return []*cobra.Command{{Use: "greet NAME", RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), "hello", args[0], "in", f.Namespace); err != nil {
				return err
			}
			return fmt.Errorf("%s does not answer", args[0])
		}}}
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			name := fmt.Sprint("ship-", i)
			got := commandtest.Run(t.Context(), commandtest.Root(commands), "", "greet", name, "-n", "shop", "--of-the-process")
			want := commandtest.Result{Code: 1, Out: "hello " + name + " in shop\n", Err: "error: " + name + " does not answer\n"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
	group.Wait()
}
