package inspection

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newAPIVersionsCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	cmd := &cobra.Command{
		Use:   "api-versions",
		Short: "List the versions of APIs that the control plane or a member serves",
		Example: `  flotilla api-versions
  flotilla api-versions -C eu-1`,
		Args: nothingMore,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := scope.One()
			if err != nil {
				return err
			}
			return fleet.DescribeOf(cluster, fleet.Until(cmd.Context(), func() error {
				return printVersions(cmd.OutOrStdout(), f.Server(cluster, fleet.Timeout))
			}))
		},
	}
	scope.AddTo(cmd, f, fleet.ScopeHub, fleet.ScopeMembers)
	return cmd
}

// printVersions reads the versions from a server, without the cache. kubectl does the same, but
// returns only the text of an error.
func printVersions(out io.Writer, server cmdutil.Factory) error {
	client, err := server.ToDiscoveryClient()
	if err != nil {
		return err
	}
	client.Invalidate()
	groups, err := client.ServerGroups()
	if err != nil {
		return err
	}
	for _, version := range slices.Sorted(slices.Values(metav1.ExtractGroupVersions(groups))) {
		if _, err := fmt.Fprintln(out, version); err != nil {
			return err
		}
	}
	return nil
}
