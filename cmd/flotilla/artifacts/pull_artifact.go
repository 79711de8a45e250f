package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/folder"
)

// pullOptions are the flags of pull artifact.
type pullOptions struct {
	registry registryFlags
	into     string
}

func newPullArtifactCommand(now clock.Clock) *cobra.Command {
	o := &pullOptions{registry: registryFlags{clock: now}}
	cmd := &cobra.Command{
		Use:   "artifact oci://HOST/REPOSITORY[:TAG|@DIGEST] -o FOLDER",
		Short: "Pull the files of an artifact into a folder",
		Long: `Pull the files of an artifact, as flux push artifact or flotilla push artifact makes it, into
a folder. A folder that does not exist is made, and is there with all files or not at
all. In one that exists files are replaced, each at once, and others stay.

What the tag leads to is asked for once, and what has another digest is refused. So are
names that lead out of the folder, devices, and more than an OCIRepository takes: 10,000
files, 50 MiB. Symbolic links are left out, and so is what Git would take for its own, as
.git/hooks: their names are printed.`,
		Example: `  flotilla pull artifact oci://registry.example.com/acme/fleet:production -o deploy/
  flotilla pull artifact oci://registry.example.com/acme/fleet@sha256:… -o /tmp/fleet --creds "acme:$TOKEN"`,
		Args: command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&o.into, "output", "o", "", "folder for the files; required")
	_ = cmd.MarkFlagDirname("output")
	o.registry.addTo(cmd)
	return cmd
}

func (o *pullOptions) run(ctx context.Context, address string, out, errOut io.Writer) error {
	if err := required(o.into, "--output", "the folder for the files, as -o deploy/"); err != nil {
		return err
	}
	if info, err := os.Stat(o.into); err == nil && !info.IsDir() {
		return command.Usage(fmt.Errorf("--output %s is no folder", o.into))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.registry.timeout)
	defer cancel()
	at, err := o.registry.open(ctx, address, false)
	if err != nil {
		return err
	}
	defer at.remote.Close()
	pulled, err := at.pull(ctx)
	if err != nil {
		return at.explain(err)
	}
	if err := folder.Write(o.into, pulled.files); err != nil {
		return err
	}
	var text strings.Builder
	for _, line := range [][2]string{{"source", pulled.annotations[annotationSource]}, {"revision", pulled.annotations[annotationRevision]}, {"digest", pulled.digest}} {
		if line[1] != "" {
			fmt.Fprintf(&text, "%s %s\n", line[0], printable(line[1]))
		}
	}
	fmt.Fprintf(&text, "pulled %s into %s\n", count(len(pulled.files), "file"), o.into)
	if _, err := io.WriteString(out, text.String()); err != nil || len(pulled.left) == 0 {
		return err
	}
	_, err = fmt.Fprintf(errOut, "warning: symbolic links, and what Git would take for its own, are left out: %s\n", excerpt.Names(pulled.left, mostLeft))
	return err
}

// mostLeft is how many names are printed of what is left out.
const mostLeft = 10

// Annotations of artifacts.
const (
	annotationSource   = "org.opencontainers.image.source"
	annotationRevision = "org.opencontainers.image.revision"
	annotationCreated  = "org.opencontainers.image.created"
)

// pulled is an artifact.
type pulled struct {
	digest      string
	annotations map[string]string
	files       artifact.Files
	left        []string // the names of what it has beside them
}

// pull reads an artifact.
func (p *place) pull(ctx context.Context) (pulled, error) {
	target, err := p.remote.Resolve(ctx, p.ref)
	if err != nil {
		return pulled{}, err
	}
	manifest, err := p.remote.Manifest(ctx, target.Digest)
	if err != nil {
		return pulled{}, err
	}
	layer, err := manifest.Layer("")
	if err != nil {
		return pulled{}, fmt.Errorf("%s@%s: %w", p.url, target.Digest, err)
	}
	content, err := p.remote.Layer(ctx, layer)
	if errors.Is(err, oci.ErrTooLarge) {
		err = fmt.Errorf("%w, which is more than an OCIRepository takes", err)
	}
	if err != nil {
		return pulled{}, err
	}
	files, left, err := folder.Unpack(content, artifact.Limits{})
	if err != nil {
		return pulled{}, fmt.Errorf("%s@%s: %w", p.url, target.Digest, err)
	}
	return pulled{target.Digest, manifest.Annotations, files, left}, nil
}

// printable is a text of somebody else's without what would do something to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, text)
}
