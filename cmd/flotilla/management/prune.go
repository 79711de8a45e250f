package management

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/internal/setback"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
	"github.com/flotilla-io/flotilla/policies/orphans"
)

// prune is one call of the command.
type prune struct {
	fleet   *fleet.Flags
	cluster string
	yes     bool
	dryRun  bool
	output  string

	hub      client.Client
	member   *rest.Config
	standing hubclaim.Standing
	mark     *hubclaim.Mark // up to where the member has seen the hub; nil if not at all
}

// pruned is the command's output for programs.
type pruned struct {
	Cluster string   `json:"cluster"`
	Objects []object `json:"objects"`
	// Unread are the kinds that could not be listed.
	Unread []string `json:"unread,omitempty"`
}

// object is one orphan.
type object struct {
	Group     string    `json:"group,omitempty"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// Work is the Work in the object's annotations, which does not contain the object: its
	// name, with the namespace before it if the Work is of another cluster.
	Work string `json:"work"`
	// Outcome is "found", "removed", "left" or "failed".
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`

	at      join.Served
	orphan  orphans.Object
	version string
	keeps   []string // its finalizers
}

// Outcomes for orphans.
const (
	outcomeFound, outcomeRemoved, outcomeLeft, outcomeFailed = "found", "removed", "left", "failed"
)

func newPrune(f *fleet.Flags) *cobra.Command {
	p := &prune{fleet: f}
	cmd := &cobra.Command{
		Use:   "prune --cluster NAME",
		Short: "Remove from a cluster what the fleet applied there and nobody asks for any more",
		Long: `Remove from a cluster what the fleet applied there and no Work names any more.

All kinds that the cluster serves are listed. An object counts if it says in every
way that this control plane applied it for a Work, and there is no such Work, or it
does not ask for the object: that is read again just before each is removed. What was
left when the cluster was registered under another name counts as well. The
list is shown first, and nothing is removed while the control plane waits for flotilla
resume hub, since it was set back to an older backup. Namespaces and CustomResourceDefinitions are shown and left, as
what others have in them would go as well.`,
		Example: `  flotilla prune --cluster east --dry-run
  flotilla prune --cluster east --yes -o json`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&p.cluster, "cluster", "C", "", "the cluster to look through")
	flags.BoolVarP(&p.yes, "yes", "y", false, "remove without asking")
	flags.BoolVar(&p.dryRun, "dry-run", false, "only show what would be removed")
	flags.StringVarP(&p.output, "output", "o", "", "how to print: json; default is text")
	for flag, complete := range map[string]cobra.CompletionFunc{
		"cluster": f.CompleteClusters, "output": cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // it was defined above
		}
	}
	return cmd
}

func (p *prune) wrong() error {
	switch {
	case p.cluster == "":
		return errors.New("--cluster is missing: name the cluster to look through; flotilla get clusters lists them")
	case command.Output(p.output, "json") != nil:
		return command.Output(p.output, "json")
	case p.yes && p.dryRun:
		return errors.New("--yes and --dry-run exclude each other")
	case p.output == "json" && !p.yes && !p.dryRun:
		return errors.New("-o json asks nobody: say --yes or --dry-run")
	}
	return nil
}

func (p *prune) run(cmd *cobra.Command) error {
	if err := p.wrong(); err != nil {
		return command.Usage(err)
	}
	ctx := cmd.Context()
	if err := p.connect(ctx); err != nil {
		return err
	}
	out, err := p.find(ctx)
	if err != nil {
		return fleet.Describe(err)
	}
	if p.output == "" {
		if err := out.print(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if len(out.Objects) > 0 {
		if err := p.held(ctx, cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	if !p.dryRun && len(out.Objects) > 0 {
		if !p.yes && !confirmed(cmd, fmt.Sprintf("Remove what is listed from %s? [y/N] ", p.cluster)) {
			return errors.New("nothing was removed: say --yes, or y at the question")
		}
		err = p.remove(ctx, cmd.OutOrStdout(), out)
	}
	if p.output == "json" {
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		err = errors.Join(err, encoder.Encode(out))
	}
	return err
}

// held returns an error while the control plane waits after a restore from an older backup, or
// would wait once it compares itself with the member: what it does not know may have been
// created after that backup. A dry run is still allowed.
func (p *prune) held(ctx context.Context, errOut io.Writer) error {
	hold, err := setback.Waits(ctx, p.hub)
	if err != nil {
		return fleet.Describe(err)
	}
	why := ""
	if hold = hold.Of(p.cluster); hold != nil {
		why = hold.Describe()
	} else if err := p.weigh(ctx); errors.Is(err, setback.ErrBehind) {
		why = err.Error()
	} else if err != nil {
		return fleet.Describe(err)
	}
	switch {
	case why == "":
		return nil
	case p.dryRun:
		_, err := fmt.Fprintf(errOut, "warning: nothing would be removed: %s\n", why)
		return err
	default:
		return fmt.Errorf("nothing was removed: %s", why)
	}
}

// weigh returns setback.ErrBehind if the member has seen later states than the control plane
// has.
func (p *prune) weigh(ctx context.Context) error {
	cfg, err := p.fleet.Config()
	if err != nil {
		return err
	}
	return setback.Weigh(ctx, p.hub, setback.Opened(cfg), p.cluster, p.mark)
}

// connect connects to the member and checks which control plane and cluster have claimed it.
func (p *prune) connect(ctx context.Context) (err error) {
	if p.hub, err = p.fleet.Client(); err != nil {
		return fleet.Describe(err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := p.hub.Get(ctx, client.ObjectKey{Name: p.cluster}, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return fleet.NoCluster(ctx, p.hub, p.cluster)
		}
		return fleet.Describe(err)
	}
	if err := join.Elsewhere(cluster); err != nil {
		return err
	}
	id, err := join.HubIdentity(ctx, p.hub)
	if err != nil {
		return fleet.Describe(err)
	}
	if id == "" {
		return errors.New("the identity of the control plane cannot be read, so nobody knows what it has applied: an account that may read its namespace kube-system is needed")
	}
	if p.member, err = p.fleet.Server(p.cluster, fleet.Timeout).ToRESTConfig(); err != nil {
		return fleet.Describe(err)
	}
	p.member.WarningHandler = rest.NoWarnings{} // of all kinds that are listed, some are deprecated
	member, err := client.New(p.member, client.Options{Scheme: scheme.New()})
	if err != nil {
		return fleet.Describe(err)
	}
	system := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return fmt.Errorf("read whose the cluster is: %w", fleet.Describe(err))
	}
	claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil {
		return err
	}
	owner := hubclaim.Claimant{Hub: id, Cluster: p.cluster}
	if hubclaim.Judge(claim, owner) == hubclaim.Anothers {
		return fmt.Errorf("cluster %s belongs to another control plane: it is %s", p.cluster, excerpt.Bytes(claim.Describe(), 512))
	}
	if err := join.ActsHere(ctx, p.hub, claim); err != nil {
		return err
	}
	if p.standing = hubclaim.StandingOf(claim, owner); hubclaim.Judge(claim, owner) == hubclaim.Ours {
		p.mark = claim.Mark
	}
	return nil
}

// find lists the orphans.
func (p *prune) find(ctx context.Context) (*pruned, error) {
	works := &works{hub: p.hub, spaces: map[string]*space{}}
	here, err := works.of(ctx, workv1alpha2.ExecutionNamespace(p.cluster))
	if err != nil {
		return nil, err
	}
	out := &pruned{Cluster: p.cluster, Objects: []object{}}
	seen := map[types.UID]bool{}
	var fault error
	out.Unread, err = join.Managed(ctx, p.member, func(at join.Served, obj *metav1.PartialObjectMetadata) {
		o := orphanOf(at, obj)
		if seen[obj.UID] || metav1.GetControllerOf(obj) != nil || !o.Suspect(p.cluster, p.standing) {
			return
		}
		if named, err := works.name(ctx, p.cluster, &o); named || err != nil {
			fault = errors.Join(fault, err)
			return
		}
		if o.Elsewhere(p.cluster) && here.asked.Has(o.ID) {
			return
		}
		seen[obj.UID] = true
		out.Objects = append(out.Objects, object{
			Group: at.Kind.Group, Kind: at.Kind.Kind, Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID,
			Work: workOf(&o, p.cluster), Outcome: outcomeFound, at: at, orphan: o, version: obj.ResourceVersion, keeps: obj.Finalizers,
		})
	})
	slices.SortFunc(out.Objects, func(a, b object) int { return strings.Compare(a.orphan.String(), b.orphan.String()) })
	return out, errors.Join(err, fault)
}

// workOf returns the Work of an object for people: its name, with the namespace if the Work is of
// another cluster.
func workOf(o *orphans.Object, cluster string) string {
	if o.Elsewhere(cluster) {
		return o.Work.String()
	}
	return o.Work.Name
}

// works caches the Works of clusters.
type works struct {
	hub    client.Client
	spaces map[string]*space
}

// space has the Works of one namespace and the objects in them.
type space struct {
	works map[string]*workv1alpha1.Work
	asked orphans.Asked
}

func (w *works) of(ctx context.Context, namespace string) (*space, error) {
	if s := w.spaces[namespace]; s != nil {
		return s, nil
	}
	var list workv1alpha1.WorkList
	if err := w.hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("read what the cluster should have: %w", err)
	}
	s := &space{works: map[string]*workv1alpha1.Work{}, asked: orphans.Asked{}}
	for i := range list.Items {
		s.works[list.Items[i].Name] = &list.Items[i]
		s.asked.Add(&list.Items[i])
	}
	w.spaces[namespace] = s
	return s, nil
}

// name reports whether one of the Works that an object may refer to contains it.
func (w *works) name(ctx context.Context, cluster string, o *orphans.Object) (bool, error) {
	for key := range o.Works(cluster) {
		s, err := w.of(ctx, key.Namespace)
		if err != nil || orphans.Named(s.works[key.Name], o.ID) {
			return err == nil, err
		}
	}
	return false, nil
}

func orphanOf(at join.Served, obj *metav1.PartialObjectMetadata) orphans.Object {
	applied := slices.ContainsFunc(obj.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == ownership.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
	return orphans.Object{
		ID:      orphans.ID{Kind: at.Kind, NamespacedName: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}},
		Work:    types.NamespacedName{Namespace: obj.Annotations[workv1alpha2.WorkNamespaceAnnotation], Name: obj.Annotations[workv1alpha2.WorkNameAnnotation]},
		Owner:   hubclaim.Ownership{Hub: obj.Annotations[workv1alpha2.HubAnnotation], Work: obj.Labels[workv1alpha2.WorkPermanentIDLabel]},
		Managed: obj.Labels[workv1alpha2.ManagedByKarmadaLabel] == workv1alpha2.ManagedByKarmadaLabelValue,
		Applied: applied, Leaving: obj.DeletionTimestamp != nil,
	}
}

// print prints what was found.
func (p *pruned) print(w io.Writer) error {
	if len(p.Unread) > 0 {
		if _, err := fmt.Fprintf(w, "could not be listed: %s\n", excerpt.Line(strings.Join(p.Unread, ", "))); err != nil {
			return err
		}
	}
	if len(p.Objects) == 0 {
		_, err := fmt.Fprintf(w, "cluster %s has nothing that nobody asks for\n", p.Cluster)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "KIND\tNAMESPACE\tNAME\tWORK")
	for _, o := range p.Objects {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", excerpt.Line(o.at.Kind.String()), excerpt.Line(o.Namespace), excerpt.Line(o.Name), excerpt.Line(o.Work))
	}
	return table.Flush()
}

// confirmed asks the user, and reports whether the answer is yes.
func confirmed(cmd *cobra.Command, question string) bool {
	_, _ = fmt.Fprint(cmd.ErrOrStderr(), question)
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil { // the input ended without a newline
		_, _ = fmt.Fprintln(cmd.ErrOrStderr())
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// remove deletes what was found.
func (p *prune) remove(ctx context.Context, w io.Writer, out *pruned) error {
	objects, err := metadata.NewForConfig(p.member)
	if err != nil {
		return fleet.Describe(err)
	}
	return p.removeEach(ctx, objects, w, out)
}

// removeEach deletes what was found, one by one, and prints each outcome.
func (p *prune) removeEach(ctx context.Context, objects metadata.Interface, w io.Writer, out *pruned) error {
	failed := 0
	for i := range out.Objects {
		o := &out.Objects[i]
		err := p.removeOne(ctx, objects, o)
		switch {
		case err != nil:
			o.Outcome, o.Message = outcomeFailed, fleet.Describe(err).Error()
			failed++
		case o.Message != "":
			o.Outcome = outcomeLeft
		default:
			o.Outcome = outcomeRemoved
		}
		if p.output == "" {
			if _, err := fmt.Fprintln(w, o.line()); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d objects could not be removed", failed, len(out.Objects))
	}
	return nil
}

// line returns the outcome for an object. It escapes control characters, because names and
// messages come from the cluster.
func (o *object) line() string {
	text := o.orphan.String() + " " + o.Outcome
	if o.Message != "" {
		text += ": " + o.Message
	}
	return excerpt.Line(text)
}

// removeOne deletes an object if it is still as it was listed and there is still no Work for it.
// If it leaves the object, it sets a message.
func (p *prune) removeOne(ctx context.Context, objects metadata.Interface, o *object) error {
	if !orphans.Removable(o.orphan.ID) {
		o.Message = "what others have in it would go as well; remove it in the cluster itself"
		return nil
	}
	if o.orphan.Leaving {
		o.Message = orphans.Deleting(o.keeps)
		return nil
	}
	for key := range o.orphan.Works(p.cluster) {
		work := &workv1alpha1.Work{}
		switch err := p.hub.Get(ctx, key, work); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case orphans.Named(work, o.orphan.ID):
			o.Message = "its Work asks for it again"
			return nil
		}
	}
	err := objects.Resource(o.at.Resource).Namespace(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.version},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	switch {
	case apierrors.IsNotFound(err):
		o.Message = "it is gone already"
	case apierrors.IsConflict(err):
		o.Message = "it has changed since it was listed"
	default:
		return err
	}
	return nil
}
