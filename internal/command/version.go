package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// Version returns the command version of a program that is one side of a fleet, such as
// "Server". It prints what flotilla version prints of a side, and asks nobody.
func Version(side string, build telemetry.Version) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := Output(output, "json", "yaml"); err != nil {
				return err
			}
			content, err := versionText(side, build, output)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(content)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it was defined above
	}
	return cmd
}

// versionText writes a version in a format; empty is for people.
func versionText(side string, build telemetry.Version, format string) ([]byte, error) {
	type version struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"goVersion"`
	}
	value := map[string]version{strings.ToLower(side) + "Version": {build.Program, build.Commit, build.Go}}
	switch format {
	case "json":
		content, err := json.MarshalIndent(value, "", "  ")
		return append(content, '\n'), err
	case "yaml":
		return yaml.Marshal(value)
	default:
		return fmt.Appendf(nil, "%s Version: %s\n", side, build.Program), nil
	}
}
