package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/Masterminds/semver/v3"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// listOptions are the flags of list artifacts.
type listOptions struct {
	registry       registryFlags
	output         output
	versions, text string
}

func newListArtifactsCommand(now clock.Clock) *cobra.Command {
	o := &listOptions{registry: registryFlags{clock: now}}
	cmd := &cobra.Command{
		Use:     "artifacts oci://HOST/REPOSITORY",
		Aliases: []string{"artifact"},
		Short:   "List the tags of a repository with what they lead to",
		Long: `List the tags of a repository of a container registry, with the digest that each leads to,
where that comes from, and which revision it is of. Tags that stand for signatures are
left out. Each costs two requests: filter where there are many.`,
		Example: `  flotilla list artifacts oci://registry.example.com/acme/fleet
  flotilla list artifacts oci://registry.example.com/acme/fleet --filter-semver ">=1.2.0"
  flotilla list artifacts oci://registry.example.com/acme/fleet --filter-regex "^prod-" -o json`,
		Args: command.Exactly("URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0], cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.versions, "filter-semver", "", "only tags that are versions within a range, such as >=1.0.0")
	flags.StringVar(&o.text, "filter-regex", "", "only tags that match a regular expression")
	o.registry.addTo(cmd)
	o.output.addTo(cmd)
	return cmd
}

// listed is a tag, for programs.
type listed struct {
	URL      string `json:"url"`
	Tag      string `json:"tag"`
	Digest   string `json:"digest"`
	Source   string `json:"source,omitempty"`
	Revision string `json:"revision,omitempty"`
	Created  string `json:"created,omitempty"`
	// Fault is why what the tag leads to cannot be read; empty if it can.
	Fault string `json:"fault,omitempty"`
}

func (o *listOptions) run(ctx context.Context, address string, out io.Writer) error {
	wanted, err := o.filter()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.registry.timeout)
	defer cancel()
	at, err := o.registry.open(ctx, address, false)
	if err != nil {
		return err
	}
	defer at.remote.Close()
	if at.ref != (oci.Ref{}) {
		return command.Usage(fmt.Errorf("tags are listed of a repository: write %s", at.url))
	}
	tags, err := at.remote.Tags(ctx)
	if err != nil {
		return at.explain(err)
	}
	tags = slices.DeleteFunc(tags, func(tag string) bool { return oci.CheckTag(tag) != nil || ofSignatures(tag) || !wanted(tag) })
	slices.SortFunc(tags, func(a, b string) int { return strings.Compare(b, a) })
	all := []listed{}
	unread := 0
	for _, tag := range tags {
		one, err := at.describe(ctx, tag)
		if errors.Is(err, oci.ErrNotFound) {
			continue // it is gone meanwhile
		}
		if err != nil && !damaged(err) {
			return at.explain(err)
		}
		if err != nil {
			one.Fault = printable(err.Error())
			unread++
		}
		all = append(all, one)
	}
	if err := o.output.print(out, all, table(all)); err != nil || unread == 0 {
		return err
	}
	return fmt.Errorf("%d of %s cannot be read: push them anew, or delete them in the registry", unread, count(len(all), "tag"))
}

// damaged reports whether an error is about what one tag leads to, and says nothing of others.
func damaged(err error) bool {
	return slices.ContainsFunc([]error{oci.ErrMalformed, oci.ErrDigest, oci.ErrTooLarge, oci.ErrStatus}, func(of error) bool { return errors.Is(err, of) })
}

// describe reads what a tag leads to, and what that says of itself, if it is an artifact.
func (p *place) describe(ctx context.Context, tag string) (listed, error) {
	out := listed{URL: p.url + ":" + tag, Tag: tag}
	target, err := p.remote.Resolve(ctx, oci.Ref{Tag: tag})
	if err != nil {
		return out, err
	}
	out.Digest = target.Digest
	manifest, err := p.remote.Manifest(ctx, target.Digest)
	switch {
	case errors.Is(err, oci.ErrNotFound):
		return out, fmt.Errorf("%w: the registry does not have what it leads to", oci.ErrMalformed)
	case errors.Is(err, oci.ErrMalformed), errors.Is(err, oci.ErrLayer): // it may be something else than an artifact
		return out, nil
	}
	says := manifest.Annotations
	out.Source, out.Revision, out.Created = says[annotationSource], says[annotationRevision], says[annotationCreated]
	return out, err
}

// filter returns which tags are wanted.
func (o *listOptions) filter() (func(tag string) bool, error) {
	pattern, err := regexp.Compile(o.text)
	if err != nil {
		return nil, command.Usage(fmt.Errorf("--filter-regex %q is no regular expression: %w", o.text, err))
	}
	if o.versions == "" {
		return pattern.MatchString, nil
	}
	within, err := semver.NewConstraint(o.versions)
	if err != nil {
		return nil, command.Usage(fmt.Errorf("--filter-semver %q is no range of versions: %w", o.versions, err))
	}
	return func(tag string) bool {
		version, err := semver.NewVersion(tag)
		return err == nil && within.Check(version) && pattern.MatchString(tag)
	}, nil
}

// signatureTags are the tags that stand for signatures, reports, and lists of what refers to an artifact.
var signatureTags = regexp.MustCompile(`^sha256-[0-9a-f]{64}(\.(sig|att|sbom))?$`)

func ofSignatures(tag string) bool { return signatureTags.MatchString(tag) }

// table is the list for people.
func table(all []listed) string {
	if len(all) == 0 {
		return "no artifacts\n"
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ARTIFACT\tDIGEST\tSOURCE\tREVISION")
	for _, one := range all {
		if one.Fault != "" {
			fmt.Fprintf(w, "%s\t%s\tcannot be read: %s\n", one.URL, orNone(one.Digest), one.Fault)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", one.URL, one.Digest, orNone(one.Source), orNone(one.Revision))
	}
	_ = w.Flush() // into memory
	return out.String()
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}
