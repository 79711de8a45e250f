package artifacts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/oci/folder"
)

// diffOptions are the flags of diff artifact.
type diffOptions struct {
	registry  registryFlags
	output    output
	selection selection
}

func newDiffArtifactCommand(now clock.Clock) *cobra.Command {
	o := &diffOptions{registry: registryFlags{clock: now}}
	cmd := &cobra.Command{
		Use:   "artifact oci://HOST/REPOSITORY[:TAG|@DIGEST] -f PATH",
		Short: "Show which files of an artifact differ from those of a folder or a file",
		Long: `Show which files of an artifact of a container registry differ from those of a folder, as
flotilla push artifact would push it: a line for each. Files count, and whether they can be run,
not how they are packed.

The exit code is 0 if there is no difference, 1 if there is one, and 2 if it is not known.`,
		Example: `  flotilla diff artifact oci://registry.example.com/acme/fleet:production -f deploy/
  flotilla diff artifact oci://registry.example.com/acme/fleet:v1 -f . -o json`,
		Args: command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selection.path, "path", "f", "", "folder or file to compare with; required")
	flags.StringSliceVar(&o.selection.ignore, "ignore-paths", folder.Ignored(), "what of the folder to leave out, in the format of .gitignore")
	flags.BoolVar(&o.selection.resolve, "resolve-symlinks", false, "compare with what symbolic links lead to; without it they are left out")
	o.registry.addTo(cmd)
	o.output.addTo(cmd)
	return cmd
}

// unknown is an error by which it is not known whether there is a difference.
type unknown struct{ error }

// ExitStatus is the exit code, which distinguishes it from a difference.
func (unknown) ExitStatus() int { return command.Wrong }

// Unwrap returns what went wrong.
func (u unknown) Unwrap() error { return u.error }

func (o *diffOptions) run(ctx context.Context, address string, out, errOut io.Writer) error {
	d, at, err := o.compare(ctx, address, errOut)
	if err != nil {
		return unknown{err}
	}
	if err := o.output.print(out, d, d.text()); err != nil {
		return unknown{err}
	}
	if d.empty() {
		return nil
	}
	return fmt.Errorf("%s and %s differ: %d changed, %d only in the folder, %d only in the artifact", at, o.selection.path, len(d.Changed), len(d.Added), len(d.Removed))
}

func (o *diffOptions) compare(ctx context.Context, address string, errOut io.Writer) (difference, string, error) {
	if err := required(o.selection.path, "--path", "the folder or file to compare with, as -f deploy/"); err != nil {
		return difference{}, "", err
	}
	local, err := o.selection.pack(ctx)
	if err != nil {
		return difference{}, "", err
	}
	if err := leftOut(errOut, local.Links); err != nil {
		return difference{}, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, o.registry.timeout)
	defer cancel()
	at, err := o.registry.open(ctx, address, false)
	if err != nil {
		return difference{}, "", err
	}
	defer at.remote.Close()
	theirs, err := at.pull(ctx)
	if err != nil {
		return difference{}, "", at.explain(err)
	}
	return differenceOf(theirs.files, local.Files), at.url + "@" + theirs.digest, nil
}

// difference are the files that an artifact and a folder do not have in common.
type difference struct {
	// Changed are in both, Added in the folder alone, and Removed in the artifact alone.
	Changed []string `json:"changed"`
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}

func differenceOf(theirs, ours artifact.Files) difference {
	d := difference{[]string{}, []string{}, []string{}}
	for name, file := range ours {
		was, there := theirs[name]
		switch {
		case !there:
			d.Added = append(d.Added, name)
		case was.Executable != file.Executable || !bytes.Equal(was.Data, file.Data):
			d.Changed = append(d.Changed, name)
		}
	}
	for name := range theirs {
		if _, there := ours[name]; !there {
			d.Removed = append(d.Removed, name)
		}
	}
	for _, names := range [][]string{d.Changed, d.Added, d.Removed} {
		slices.Sort(names)
	}
	return d
}

func (d difference) empty() bool { return len(d.Changed)+len(d.Added)+len(d.Removed) == 0 }

func (d difference) text() string {
	if d.empty() {
		return "no difference\n"
	}
	var out strings.Builder
	for _, part := range []struct {
		word  string
		names []string
	}{{"changed", d.Changed}, {"only in the folder", d.Added}, {"only in the artifact", d.Removed}} {
		for _, name := range part.names {
			fmt.Fprintf(&out, "%s: %s\n", name, part.word)
		}
	}
	return out.String()
}
