package planning

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/planning/snapshot"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
)

// planFlags are the flags of plan.
type planFlags struct {
	hub           *fleet.Flags
	files, base   []string
	fleetFile     string
	kustomization string
	scope         fleet.Scope
	output        string
	exitCode, all bool
}

// formats of --output.
var formats = []string{"text", "json", "yaml", "markdown"}

func newPlanCommand(hub *fleet.Flags) *cobra.Command {
	f := &planFlags{hub: hub}
	cmd := &cobra.Command{
		Use:   "plan FOLDER | -f FILE...",
		Short: "Say what a change of files does to each cluster, before it is applied",
		Long: `Say what a change of files does to each cluster, before it is applied or merged: which
clusters gain and lose what and why, how replicas move, the exact difference of what each cluster
will hold, with equal differences once, which pods restart, and what is risky. It asks the
functions by which the control plane decides, for templates, policies and overrides alike, and
changes nothing.

The files are compared with what the control plane holds; objects of files are sent to it as a dry
run, so that defaults make no difference. With --base they are compared with other files, such as
those of the branch that the change is to be merged into: what is there and not in the new files
is deleted. A folder is built as a Kustomization with that path would be; with --kustomization it
is the root of the repository, and is built as that Kustomization says, which is also asked
whether its brake would refuse what goes.

With --fleet and --base no control plane is needed: flotilla fleet export writes the file.
Values of Secrets are never shown; a digest that is another each time stands for one.`,
		Example: `  flotilla plan deploy/
  flotilla plan . --kustomization flux-system/shop
  flotilla plan -f web.yaml -f policy.yaml -C eu-1
  git worktree add ../main main && flotilla plan . --base ../main --fleet fleet.yaml -o markdown --exit-code`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.files = append(f.files, args...)
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "file or folder of the change; - reads standard input")
	flags.StringSliceVar(&f.base, "base", nil, "file or folder to compare with, instead of what the control plane holds")
	flags.StringVar(&f.fleetFile, "fleet", "", "file of flotilla fleet export, instead of the control plane; needs --base")
	flags.StringVar(&f.kustomization, "kustomization", "", "NAMESPACE/NAME of the Kustomization that applies the files; without it nothing that the control plane holds is deleted, unless it is in --base")
	f.scope.AddClustersTo(cmd, hub, "say only what is about these clusters")
	flags.StringVarP(&f.output, "output", "o", "text", strings.Join(formats, ", "))
	flags.BoolVar(&f.exitCode, "exit-code", false, "exit with 0 if nothing changes in any cluster, 1 if something does, and 2 on an error")
	flags.BoolVar(&f.all, "all", false, "name every cluster, instead of the first of many")
	f.complete(cmd)
	return cmd
}

// complete offers files and formats.
func (f *planFlags) complete(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	output := cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", output); err != nil {
		panic(err) // the flag was defined above
	}
}

// unknown is an error by which it is not known whether anything changes.
type unknown struct{ error }

// ExitStatus tells it from a change.
func (unknown) ExitStatus() int { return command.Wrong }

// Unwrap returns what went wrong.
func (u unknown) Unwrap() error { return u.error }

// run plans, and writes what changes.
func (f *planFlags) run(cmd *cobra.Command) error {
	c, err := f.compare(cmd)
	if err == nil {
		err = f.write(cmd.OutOrStdout(), c)
	}
	switch {
	case err != nil && f.exitCode:
		return unknown{err}
	case err != nil:
		return err
	case f.exitCode && !c.Empty():
		return errors.New(report.Summary(c))
	}
	return nil
}

// check returns what is wrong with the call.
func (f *planFlags) check() error {
	switch {
	case len(f.files) == 0:
		return command.Usage(errors.New("the files of the change are missing: flotilla plan FOLDER"))
	case f.fleetFile != "" && len(f.base) == 0:
		return command.Usage(errors.New("--fleet needs --base, the files before the change: the control plane fills in defaults, which files do not have"))
	case f.kustomization != "" && strings.Count(f.kustomization, "/") != 1:
		return command.Usage(fmt.Errorf("--kustomization %q is not NAMESPACE/NAME", f.kustomization))
	case slices.Contains(f.files, "-") && slices.Contains(f.base, "-"):
		return command.Usage(errors.New("standard input can be read only once: name a file for -f or --base"))
	}
	return command.Output(f.output, formats...)
}

func (f *planFlags) compare(cmd *cobra.Command) (comparison.Comparison, error) {
	if err := f.check(); err != nil {
		return comparison.Comparison{}, err
	}
	ctx := cmd.Context()
	w, err := f.world(ctx, cmd.InOrStdin())
	if err != nil {
		return comparison.Comparison{}, fleet.Describe(err)
	}
	if w.note != "" {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s: %s\n", f.kustomization, w.note); err != nil {
			return comparison.Comparison{}, err
		}
	}
	base, head, err := w.sides(ctx, f.files, f.base)
	if err != nil {
		return comparison.Comparison{}, fleet.Describe(err)
	}
	in := comparison.Input{Base: comparison.Plan(base), Salt: make([]byte, 16), Brake: brake(w.snapshot.Kustomization)}
	if _, err := rand.Read(in.Salt); err != nil {
		return comparison.Comparison{}, err
	}
	next := in.Base.Then(head)
	next.Kept = plan.Keep(base, in.Base.Plans)
	in.Head = comparison.Plan(next)
	c := comparison.Compare(in)
	if len(f.scope.Named()) == 0 {
		c.Risks = slices.Concat(w.unfollowed, c.Risks)
		return c, nil
	}
	for _, name := range f.scope.Named() {
		if !slices.ContainsFunc(w.snapshot.Clusters, named(name)) {
			return c, command.Usage(fmt.Errorf("there is no cluster %s in the fleet", name))
		}
	}
	c = c.Only(f.scope.Named())
	c.Risks = slices.Concat(w.unfollowed, c.Risks)
	return c, nil
}

// write writes a Comparison in the requested format.
func (f *planFlags) write(out io.Writer, c comparison.Comparison) error {
	var content []byte
	var err error
	switch f.output {
	case "json":
		content, err = report.JSON(c)
	case "yaml":
		content, err = report.YAML(c)
	case "markdown":
		content = []byte(report.Markdown(c, report.MarkdownOptions{Whole: "flotilla plan"}))
	default:
		_, err = io.WriteString(tint.Difference(out), report.Text(c, report.TextOptions{All: f.all, Width: screen.Width(out)}))
		return err
	}
	if err == nil {
		_, err = out.Write(content)
	}
	return err
}

// world is a fleet, and how files are read and compared with it.
type world struct {
	snapshot *snapshot.Snapshot
	fleet    plan.FleetInput
	reading  reading
	// hub is nil where a file stands for the control plane.
	hub   client.Client
	prune bool
	owner string
	// unfollowed is what the change does by other Kustomizations, and the plan does not show.
	unfollowed []comparison.Risk
	// note is what the user should know besides; empty for nothing.
	note string
}

// world reads the fleet.
func (f *planFlags) world(ctx context.Context, stdin io.Reader) (*world, error) {
	now := time.Now()
	w := &world{reading: reading{stdin: stdin, namespace: f.hub.Namespace, as: nothing{}}, owner: f.kustomization}
	var err error
	if f.fleetFile != "" {
		content, err := readFleet(f.fleetFile)
		if err != nil {
			return nil, command.Usage(err)
		}
		if w.snapshot, err = snapshot.Read(content); err != nil {
			return nil, command.Usage(fmt.Errorf("%s %w", f.fleetFile, err))
		}
	} else if err = w.connect(ctx, f.hub, now); err != nil {
		return nil, err
	}
	if w.reading.namespace == "" {
		w.reading.namespace = "default"
	}
	if f.kustomization != "" {
		namespace, name, _ := strings.Cut(f.kustomization, "/")
		if w.reading.of = w.snapshot.Kustomization(namespace, name); w.reading.of == nil {
			return nil, command.Usage(fmt.Errorf("there is no Kustomization %s in the fleet: flotilla get kustomizations -A lists them", f.kustomization))
		}
		w.prune = w.reading.of.Spec.Prune
		w.lacking()
	}
	var given []*configv1alpha1.ResourceInterpreterCustomization
	for i := range w.snapshot.Customizations {
		given = append(given, &w.snapshot.Customizations[i])
	}
	stack := customization.NewStack(lua.New(lua.Options{Now: time.Now, Time: time.Minute}), given)
	w.fleet = w.snapshot.Fleet(stack.Interpreter(), now)
	return w, nil
}

// mostFleet is how large the file of a fleet may be, in bytes.
const mostFleet = 256 << 20

// readFleet reads the file of a fleet, which may be a pipe.
func readFleet(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() || info.Mode()&os.ModeDevice != 0 {
		return nil, fmt.Errorf("%s is no file: flotilla fleet export > fleet.yaml writes one", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, mostFleet+1))
	if err == nil && len(content) > mostFleet {
		err = fmt.Errorf("%s has more than %d MiB: it is no export of a fleet, or of one that is too large for it", path, mostFleet>>20)
	}
	return content, err
}

// lacking removes variables that a file of the fleet does not have: what they are put into stays as it is written.
func (w *world) lacking() {
	if post := w.reading.of.Spec.PostBuild; w.hub == nil && post != nil && len(post.SubstituteFrom) > 0 {
		w.reading.of.Spec.PostBuild = nil
		w.note = "its variables come from ConfigMaps and Secrets, which the file of the fleet does not have: they are compared as they are written"
	}
}

// connect reads the fleet of the control plane.
func (w *world) connect(ctx context.Context, f *fleet.Flags, now time.Time) error {
	hub, err := f.Client()
	if err != nil {
		return err
	}
	namespace, _, err := f.Factory().ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	w.hub, w.reading.as, w.reading.namespace = hub, hub, namespace
	w.reading.scope = func(apiVersion, kind string) (bool, bool) {
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		mapping, err := hub.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return false, false
		}
		return mapping.Scope.Name() == "namespace", true
	}
	w.snapshot, err = snapshot.Of(ctx, hub, now)
	return err
}

// sides returns the fleet before and after the change.
func (w *world) sides(ctx context.Context, files, base []string) (before, after plan.FleetInput, err error) {
	objects, err := w.reading.objects(ctx, files)
	if err != nil {
		return before, after, err
	}
	if err := w.missing(ctx, objects); err != nil {
		return before, after, err
	}
	before = w.fleet
	rest, head := w.fleet, keysOf(objects)
	var was []*unstructured.Unstructured
	switch {
	case len(base) > 0:
		if was, err = w.reading.objects(ctx, base); err != nil {
			return before, after, err
		}
		if before, err = with(before, was, false); err != nil {
			return before, after, err
		}
		old := keysOf(was)
		rest = without(before, func(k key, obj metav1.Object) bool { return old[k] && !head[k] && !kept(obj) })
	case w.owner != "" && w.prune:
		rest = without(rest, func(k key, obj metav1.Object) bool {
			labels := obj.GetLabels()
			return labels[owners[1]]+"/"+labels[owners[0]] == w.owner && !head[k] && !kept(obj)
		})
	}
	if w.hub != nil && len(base) == 0 {
		if objects, err = w.tried(ctx, objects); err != nil {
			return before, after, err
		}
	}
	if w.unfollowed, err = w.children(was, objects, len(base) > 0); err != nil {
		return before, after, err
	}
	after, err = with(rest, objects, true)
	return before, after, err
}

// kept reports whether an object stays where its Kustomization does not have it any more.
func kept(obj metav1.Object) bool {
	for _, name := range []string{"/prune", "/reconcile"} {
		name = kustomizev1.GroupVersion.Group + name
		if strings.EqualFold(obj.GetLabels()[name], kustomizev1.DisabledValue) || strings.EqualFold(obj.GetAnnotations()[name], kustomizev1.DisabledValue) {
			return true
		}
	}
	return false
}

func keysOf(objects []*unstructured.Unstructured) map[key]bool {
	out := make(map[key]bool, len(objects))
	for _, obj := range objects {
		out[keyOfObject(obj)] = true
	}
	return out
}

// nothing is a client.Reader for those who have none.
type nothing struct{ client.Reader }
