package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
	"github.com/flotilla-io/flotilla/internal/command"
)

// validateOptions are the flags of validate.
type validateOptions struct {
	files  []string
	output string
	strict bool
	lint   lint.Options
}

func newValidateCommand() *cobra.Command {
	opts := &validateOptions{}
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check policies and other manifests in files, without a cluster",
		Long: `Check manifests as the control plane would when they are applied: unknown and
duplicate fields, schemas, everything that it refuses and everything that it warns
of. Then check them together: objects that are there twice, overrides that a policy
waits for, policies that select none of the templates.

The Kustomizations of a folder are built as the control plane does, from the Git
repository that it is in, and what comes out is checked, too; so are the
Kustomizations that they depend on. In a folder without any, the kustomizations that
no other one takes in are built, each as a Kustomization with its path would be.

Files are YAML or JSON with any number of documents. A folder stands for all *.yaml,
*.yml and *.json below it; - is the standard input. Kinds of Karmada, Flux and
Flotilla are checked. Of all other kinds, such as Deployment, only the name is
looked at: their schema is not checked, nor are rules in CEL.

A finding is one line: FILE:LINE: error|warning: KIND NAME: field: message.
The exit code is 0 if nothing is wrong, 1 if something is, 2 for a wrong call.`,
		Example: `  flotilla validate -f policies/
  flotilla validate -f .
  kustomize build . | flotilla validate --strict -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.files = append(opts.files, args...)
			return opts.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&opts.files, "filename", "f", nil, "file or folder to check, or - for the standard input; may be repeated")
	flags.StringVarP(&opts.output, "output", "o", "text", "text or json")
	flags.BoolVar(&opts.strict, "strict", false, "let warnings fail, too")
	flags.BoolVar(&opts.strict, "warnings-as-errors", false, "the same as --strict")
	flags.StringVarP(&opts.lint.Namespace, "namespace", "n", "default", "namespace of objects that name none")
	flags.BoolVar(&opts.lint.AllowNoExecuteTaints, "allow-no-execute-taint-policy", false, "accept ClusterTaintPolicies whose taints evict workloads, as the flag of flotillad serve does")
	return cmd
}

func (o *validateOptions) run(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	if len(o.files) == 0 {
		return command.Usage(errors.New("no files: name some with -f, or - for the standard input"))
	}
	if err := command.Output(o.output, "text", "json"); err != nil {
		return err
	}
	files, err := lint.Files(o.files, in)
	if errors.Is(err, fs.ErrNotExist) {
		return command.Usage(err)
	}
	if err != nil {
		return err
	}
	o.lint.Now, o.lint.Build, o.lint.Folders = time.Now(), true, lint.Folders(o.files)
	linter, err := lint.New()
	if err != nil {
		return err
	}
	report, err := linter.Lint(ctx, files, o.lint)
	if err != nil {
		return err
	}
	if len(files) == 0 && report.Kustomized == 0 && len(report.Findings) == 0 {
		return command.Usage(errors.New("there is no *.yaml, *.yml or *.json file in the folder"))
	}
	if err := o.print(report, out); err != nil {
		return err
	}
	summary := fmt.Sprintf("%s, %s, %d of them checked%s: %s, %s", count(report.Files, "file"), count(report.Objects, "object"), report.Checked, built(report),
		count(report.Errors, "error"), count(report.Warnings, "warning"))
	if report.Errors > 0 || (o.strict && report.Warnings > 0) {
		return errors.New(summary)
	}
	_, err = fmt.Fprintln(errOut, summary)
	return err
}

func (o *validateOptions) print(report lint.Report, out io.Writer) error {
	if o.output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	for _, f := range report.Findings {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}

// built returns how many Kustomizations and folders were built; empty if there were none.
func built(report lint.Report) string {
	out := ""
	if report.Built > 0 {
		out = ", " + count(report.Built, "Kustomization") + " built"
	}
	if report.Unbuilt > 0 {
		out += ", " + count(report.Unbuilt, "Kustomization") + " of other sources not built"
	}
	if report.Encrypted > 0 {
		out += ", " + count(report.Encrypted, "file") + " encrypted, of which the values were not looked at"
	}
	if report.Kustomized > 0 {
		out += ", " + count(report.Kustomized, "folder") + " with a kustomization built"
	}
	return out
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
