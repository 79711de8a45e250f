package artifacts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/oci/keychain"
)

// Commands returns the commands of this package.
func Commands(*fleet.Flags) []*cobra.Command {
	return commands(clock.RealClock{})
}

func commands(now clock.Clock) []*cobra.Command {
	return []*cobra.Command{
		verb("push", "Push files to a container registry, as an artifact that an OCIRepository follows", newPushArtifactCommand(now)),
		verb("pull", "Pull the files of an artifact from a container registry", newPullArtifactCommand(now)),
		verb("tag", "Give an artifact of a container registry more tags", newTagArtifactCommand(now)),
		verb("list", "List the artifacts of a container registry", newListArtifactsCommand(now)),
		verb("diff", "Show which files of an artifact differ from those of a folder", newDiffArtifactCommand(now)),
	}
}

// verb returns a command of which there is only one kind.
func verb(name, short string, of *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Example: of.Example, ValidArgsFunction: cobra.NoFileCompletions}
	cmd.DisableFlagParsing = name == "diff" // which people know from kubectl, with flags
	cmd.AddCommand(of)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return cmd.Help()
		}
		call := cmd.CommandPath() + " " + of.Use
		if name == "diff" && len(args) > 0 {
			return command.Usage(diffElsewhere(cmd.Root().CommandPath(), call, args))
		}
		return command.Usage(fmt.Errorf("%s is missing: %s", of.Name(), call))
	}
	return cmd
}

// environment is that of the user.
func environment() keychain.Environment {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	return keychain.Environment{Home: home, Getenv: os.Getenv}
}

// output is the value of -o.
type output struct{ format string }

func (o *output) addTo(cmd *cobra.Command) {
	formats := []string{"json", "yaml"}
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "print what was done for programs: "+strings.Join(formats, " or "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(*cobra.Command, []string) error { return command.Output(o.format, formats...) }
}

// print writes a value for programs, or a text for people.
func (o *output) print(w io.Writer, value any, text string) error {
	content := []byte(text)
	var err error
	switch o.format {
	case "json":
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	case "yaml":
		content, err = yaml.Marshal(value)
	}
	if err == nil {
		_, err = w.Write(content)
	}
	return err
}

// selection are the flags about which files of a folder belong to an artifact.
type selection struct {
	path    string
	ignore  []string
	resolve bool
}

// required returns an error for a flag without a value.
func required(value, flag, what string) error {
	if value == "" {
		return command.Usage(errors.New(flag + " is missing: " + what))
	}
	return nil
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// bytesOf writes a number of bytes.
func bytesOf(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	default:
		return count(int(n), "byte")
	}
}
