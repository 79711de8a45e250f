package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/oci/folder"
	"github.com/flotilla-io/flotilla/sources/oci/push"
)

// pushOptions are the flags of push artifact.
type pushOptions struct {
	registry         registryFlags
	selection        selection
	output           output
	signing          signingFlags
	source, revision string
	annotations      []string
	reproducible     bool
}

func newPushArtifactCommand(now clock.Clock) *cobra.Command {
	o := &pushOptions{registry: registryFlags{clock: now}}
	cmd := &cobra.Command{
		Use:   "artifact oci://HOST/REPOSITORY[:TAG] -f PATH --source URL --revision REVISION",
		Short: "Push a folder or a file to a container registry",
		Long: `Push a folder, a file, or the standard input to a container registry, as an artifact that
OCIRepositories follow. It is what flux push artifact makes: either reads what the other
has pushed, and equal files have equal digests. What the registry has already is not
sent again, and nothing is written where the tag leads to the same already.

The login is that of --creds, else what docker login or podman login has kept, or a
credential helper that their configuration names. A registry on this machine (localhost)
may speak HTTP; another that does needs --insecure-registry.

--sign signs the artifact as cosign does with a private key (cosign generate-key-pair),
whose password is in $COSIGN_PASSWORD. spec.verify of an OCIRepository asks for that.
Signatures without a key, by an identity, take cosign itself and a network.`,
		Example: `  flotilla push artifact oci://registry.example.com/acme/fleet:production -f deploy/ \
    --source="$(git config --get remote.origin.url)" \
    --revision="main@sha1:$(git rev-parse HEAD)"
  kustomize build . | flotilla push artifact oci://registry.example.com/acme/fleet:v1 -f - --source=https://git.test/fleet --revision=v1
  COSIGN_PASSWORD=… flotilla push artifact oci://registry.example.com/acme/fleet:v1 -f . --source=… --revision=… --sign --key cosign.key
  flotilla push artifact oci://localhost:5000/fleet:v1 -f . --source=… --revision=… --reproducible -o json`,
		Args: command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.selection.path, "path", "f", "", "folder or file to push, or - for the standard input; required")
	flags.StringVar(&o.source, "source", "", "where the files come from, such as the URL of a Git repository; required")
	flags.StringVar(&o.revision, "revision", "", "which files they are, as BRANCH@sha1:COMMIT or TAG@sha1:COMMIT; required")
	flags.StringArrayVarP(&o.annotations, "annotations", "a", nil, "annotation of the artifact, as KEY=VALUE; may be repeated")
	flags.StringSliceVar(&o.selection.ignore, "ignore-paths", folder.Ignored(), "what to leave out, in the format of .gitignore")
	flags.BoolVar(&o.selection.resolve, "resolve-symlinks", false, "push what symbolic links lead to; without it they are left out")
	flags.BoolVar(&o.reproducible, "reproducible", false, "have equal files get equal digests: the artifact says that it is of 1970")
	o.signing.addTo(cmd)
	o.registry.addTo(cmd)
	o.output.addTo(cmd)
	return cmd
}

// pushed is what was pushed, for programs.
type pushed struct {
	URL        string `json:"url"`
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest"`
	Unchanged  bool   `json:"unchanged,omitempty"`
	Signed     bool   `json:"signed,omitempty"`
}

func (o *pushOptions) run(ctx context.Context, address string, in io.Reader, out, errOut io.Writer) error {
	annotations, err := o.check()
	if err != nil {
		return err
	}
	key, err := o.signing.read()
	if err != nil {
		return err
	}
	packed, err := o.pack(ctx, in)
	if err != nil {
		return err
	}
	if err := leftOut(errOut, packed.Links); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.registry.timeout)
	defer cancel()
	at, err := o.registry.open(ctx, address, true)
	if err != nil {
		return err
	}
	defer at.remote.Close()
	if at.ref.Digest != "" {
		return command.Usage(errors.New("what is pushed has a tag: write oci://HOST/REPOSITORY:TAG"))
	}
	tag := tagOf(at)
	meter := newMeter(errOut)
	to := push.To(at.remote, push.Options{Clock: o.registry.clock, Progress: meter.show})
	done, err := to.Push(ctx, tag, push.Artifact{
		Layer: packed.Layer, Source: o.source, Revision: o.revision, Annotations: annotations, Created: o.created(),
	})
	meter.end()
	if err != nil {
		return at.explain(fmt.Errorf("push to %s: %w", at.url, err))
	}
	report := pushed{URL: at.url + "@" + done.Digest, Repository: at.name, Tag: tag, Digest: done.Digest, Unchanged: done.Unchanged}
	sent := bytesOf(done.Sent) + " sent"
	if done.Sent == 0 {
		sent = "which the registry has already"
	}
	text := fmt.Sprintf("pushed %s:%s@%s: %s, %s\n", at.name, tag, done.Digest, count(len(packed.Files), "file"), sent)
	if done.Unchanged {
		text = fmt.Sprintf("unchanged %s:%s@%s: %s\n", at.name, tag, done.Digest, count(len(packed.Files), "file"))
	}
	if key != nil {
		before, err := signer{key, o.signing.form, o.registry.clock}.sign(ctx, at, to, done.Digest)
		if err != nil {
			return fmt.Errorf("%s was pushed, and not signed: %w", report.URL, at.explain(err))
		}
		report.Signed = true
		text += "signed with " + o.signing.key + map[bool]string{true: " before"}[before] + "\n"
	}
	return o.output.print(out, report, text)
}

// check looks at the flags, and returns the annotations.
func (o *pushOptions) check() (map[string]string, error) {
	for _, err := range []error{
		required(o.selection.path, "--path", "the folder or file to push, as -f deploy/"),
		required(o.source, "--source", `where the files come from, as --source="$(git config --get remote.origin.url)"`),
		required(o.revision, "--revision", `which they are, as --revision="main@sha1:$(git rev-parse HEAD)"`),
	} {
		if err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for _, text := range o.annotations {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, command.Usage(fmt.Errorf("--annotations %q is not KEY=VALUE", text))
		}
		out[name] = value
	}
	return out, nil
}

// mostInput is how much of the standard input is read, in bytes.
const mostInput = 64 << 20

func (o *pushOptions) pack(ctx context.Context, in io.Reader) (folder.Packed, error) {
	if o.selection.path == "-" {
		content, err := io.ReadAll(io.LimitReader(in, mostInput))
		if err == nil && len(strings.TrimSpace(string(content))) == 0 {
			err = errors.New("it is empty: whoever follows the artifact would remove everything")
		}
		if err != nil {
			return folder.Packed{}, fmt.Errorf("read the standard input: %w", err)
		}
		return folder.PackText("manifests.yaml", content, artifact.Limits{})
	}
	return o.selection.pack(ctx)
}

// pack packs what is selected, which is something.
func (s selection) pack(ctx context.Context) (folder.Packed, error) {
	packed, err := folder.Pack(ctx, s.path, folder.Selection{Ignore: s.ignore, Resolve: s.resolve})
	if errors.Is(err, folder.ErrPath) {
		return packed, command.Usage(err)
	}
	if err == nil && len(packed.Files) == 0 {
		err = fmt.Errorf("%s has no files that are not left out: whoever follows the artifact would remove everything", s.path)
	}
	return packed, err
}

func (o *pushOptions) created() time.Time {
	if o.reproducible {
		return time.Unix(0, 0)
	}
	return o.registry.clock.Now()
}

// tagOf returns the tag that an address means.
func tagOf(at *place) string {
	if at.ref.Tag == "" {
		return "latest"
	}
	return at.ref.Tag
}

// leftOut names symbolic links.
func leftOut(w io.Writer, links []string) error {
	const named = 3
	if len(links) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "warning: symbolic links are left out: %s; --resolve-symlinks pushes what they lead to\n", excerpt.Names(links, named))
	return err
}
