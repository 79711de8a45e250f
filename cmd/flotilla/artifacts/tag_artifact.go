package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/push"
)

// tagOptions are the flags of tag artifact.
type tagOptions struct {
	registry registryFlags
	output   output
	tags     []string
}

func newTagArtifactCommand(now clock.Clock) *cobra.Command {
	o := &tagOptions{registry: registryFlags{clock: now}}
	cmd := &cobra.Command{
		Use:   "artifact oci://HOST/REPOSITORY[:TAG|@DIGEST] --tag TAG",
		Short: "Have more tags lead to an artifact",
		Long: `Have tags lead to an artifact that is in the registry already: nothing is pulled, and
nothing of it is pushed again. A tag that led elsewhere moves; OCIRepositories that
follow it fetch the artifact.`,
		Example: `  flotilla tag artifact oci://registry.example.com/acme/fleet:v1.2.0 --tag production
  flotilla tag artifact oci://registry.example.com/acme/fleet@sha256:… --tag canary --tag latest`,
		Args: command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], cmd.OutOrStdout()) },
	}
	cmd.Flags().StringSliceVar(&o.tags, "tag", nil, "tag that is to lead to the artifact; may be repeated; required")
	o.registry.addTo(cmd)
	o.output.addTo(cmd)
	return cmd
}

func (o *tagOptions) run(ctx context.Context, address string, out io.Writer) error {
	if len(o.tags) == 0 {
		return command.Usage(errors.New("--tag is missing: the tag that is to lead to the artifact, as --tag production"))
	}
	for _, tag := range o.tags {
		if err := oci.CheckTag(tag); err != nil {
			return command.Usage(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.registry.timeout)
	defer cancel()
	at, err := o.registry.open(ctx, address, true)
	if err != nil {
		return err
	}
	defer at.remote.Close()
	target, err := at.remote.Resolve(ctx, at.ref)
	if err != nil {
		return at.explain(err)
	}
	to := push.To(at.remote, push.Options{Clock: o.registry.clock})
	var done []pushed
	var text strings.Builder
	for _, tag := range o.tags {
		before, err := to.Tag(ctx, target.Digest, tag)
		if err != nil {
			return at.explain(err)
		}
		done = append(done, pushed{URL: at.url + "@" + target.Digest, Repository: at.name, Tag: tag, Digest: target.Digest, Unchanged: before})
		fmt.Fprintf(&text, "%s %s:%s@%s\n", map[bool]string{false: "tagged", true: "unchanged"}[before], at.name, tag, target.Digest)
	}
	return o.output.print(out, done, text.String())
}
