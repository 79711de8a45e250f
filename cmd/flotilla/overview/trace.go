package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/presence"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/remains"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/revision"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/screen"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
	"github.com/flotilla-io/flotilla/policies/explain/lastmove"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

func newTraceCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	var out output
	cmd := &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show where an object comes from, and where it runs",
		Long: `Show where an object comes from, and where it runs: repository, commit and its
author, file, Kustomization, policy, overrides, binding, and for each cluster the
Work and the object that the cluster has.

With --cluster the way begins at an object in that member, such as a Pod.`,
		Example: `  flotilla trace deployment/web -n shop
  flotilla trace pod/web-5d4f8c7b9-x2x9k -n shop --cluster east
  flotilla trace kustomization/web -n flux-system -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := object(args)
			if err != nil {
				return err
			}
			cluster, err := scope.One()
			if err != nil {
				return err
			}
			return runTrace(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr(), &out, place{cluster, kind, name})
		},
	}
	scope.AddClustersTo(cmd, f, "member that the object is in")
	out.addTo(cmd, asJSON, asYAML)
	cmd.ValidArgsFunction = f.CompleteObject()
	return cmd
}

// place names an object by the arguments of a command.
type place struct{ cluster, kind, name string }

func runTrace(ctx context.Context, f *fleet.Flags, w, errOut io.Writer, out *output, at place) error {
	hub, err := listing.Hub(f)
	if err != nil {
		return fleet.Describe(err)
	}
	t := &tracer{reader: reader{hub}, flags: f, errOut: errOut, files: revision.New()}
	if err := t.run(ctx, at); err != nil {
		return fleet.Describe(err)
	}
	if done, err := out.structured(w, t.out); done {
		return err
	}
	return t.out.Text(tint.For(w), lineage.TextOptions{Width: screen.Width(w)})
}

// tracer follows one object in both directions.
type tracer struct {
	reader
	flags  *fleet.Flags
	errOut io.Writer // shows which clusters have not answered yet
	files  revision.Reader
	out    lineage.Trace
}

func (t *tracer) note(format string, args ...any) {
	t.out.Notes = append(t.out.Notes, fmt.Sprintf(format, args...))
}

func (t *tracer) run(ctx context.Context, at place) error {
	obj, err := lookup(ctx, t.flags, at.cluster, at.kind, at.name, "-n names another namespace, --cluster a member")
	if err != nil {
		return gone(ctx, t, at, err)
	}
	t.out = lineage.Trace{APIVersion: situation.APIVersion, Kind: "ObjectTrace", Object: objectOf(obj, at.cluster)}
	template := obj
	switch gk := obj.GroupVersionKind().GroupKind(); {
	case at.cluster != "":
		template, err = t.climb(ctx, obj, at.cluster)
	case gk.Group == sourcev1.GroupVersion.Group:
		if kind, followed := origins.KindOf(gk.Kind); followed {
			return t.fetched(obj, kind)
		}
	case gk == kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind():
		return t.kustomization(ctx, obj)
	case gk.Group == workv1alpha2.GroupVersion.Group:
		template, err = t.carried(ctx, obj)
	}
	if err != nil || template == nil {
		return err
	}
	if template != obj {
		o := objectOf(template, "")
		t.out.Template = &o
	}
	if err := t.origin(ctx, template); err != nil {
		return err
	}
	return t.delivery(ctx, template)
}

// gone prints what is left of an object that is not on the control plane, if there is anything.
func gone(ctx context.Context, t *tracer, at place, err error) error {
	var absent *absentError
	if !errors.As(err, &absent) || at.cluster != "" {
		return err
	}
	obj, unknown := presence.Named(t.flags.Factory(), at.kind, absent.namespace, at.name)
	if unknown != nil {
		return err
	}
	found, failed := remains.Of(ctx, t.hub, obj)
	if failed != nil || len(found.Sentences) == 0 {
		return errors.Join(err, failed)
	}
	silent, failed := t.silences(ctx)
	t.out = lineage.Trace{APIVersion: situation.APIVersion, Kind: "ObjectTrace", Object: objectOf(obj, ""), Notes: found.Sentences, Clusters: deliveriesOfWorks(found.Works, silent)}
	return errors.Join(failed, t.members(ctx, obj, silent))
}

// carried returns the template of a binding or Work.
func (t *tracer) carried(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if obj.GetKind() == workv1alpha1.ResourceKindWork {
		var w workv1alpha1.Work
		if err := into(obj, &w); err != nil {
			return nil, err
		}
		return t.templateOfWork(ctx, &w)
	}
	var b workv1alpha2.ResourceBinding // both scopes have the same spec
	if err := into(obj, &b); err != nil {
		return nil, err
	}
	ref := b.Spec.Resource
	return t.templateOrNote(t.get(ctx, ref.APIVersion, ref.Kind, ref.Namespace, ref.Name))
}

// templateOfWork returns the template of a Work; nil, with a note, if there is none.
func (t *tracer) templateOfWork(ctx context.Context, w *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" && w.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] == "" {
		t.note("Work %s was made by no binding, so that no template stands behind it: what it holds is in the cluster until somebody deletes the Work.", w.Namespace+"/"+w.Name)
		return nil, nil
	}
	return t.templateOrNote(t.templateOf(ctx, w))
}

// templateOrNote adds a note for a template that is gone or that the user may not read.
func (t *tracer) templateOrNote(template *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if apierrors.IsNotFound(err) {
		t.note("Its template is not on the control plane any more: what is in the clusters will go.")
		return nil, nil
	}
	if apierrors.IsForbidden(err) {
		t.note("You may not read its template, %s: nothing is said of where it comes from.", objectOf(template, ""))
		return nil, nil
	}
	return template, err
}

// delivery finds policy, binding, Works and members' objects.
func (t *tracer) delivery(ctx context.Context, template *unstructured.Unstructured) error {
	if ref, ok := propagation.Claimed(template); ok {
		kind := "PropagationPolicy"
		if ref.Namespace == "" {
			kind = "ClusterPropagationPolicy"
		}
		t.out.Policy = &lineage.Object{APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind, Namespace: ref.Namespace, Name: ref.Name}
	}
	if template.GroupVersionKind().GroupKind().String() == "Namespace" {
		return t.deliveryOfNamespace(ctx, template)
	}
	b, err := t.binding(ctx, template)
	if apierrors.IsForbidden(err) {
		t.note("You may not read its binding: nothing is said of the clusters that it goes to.")
		return nil
	}
	if err != nil {
		return err
	}
	if b == nil {
		t.note("%s", t.uncarried(ctx, template))
		return nil
	}
	mine, err := t.worksOrNote(ctx, b)
	if err != nil {
		return err
	}
	template = t.asCarried(ctx, template, b)
	t.placed(template, b, mine)
	t.out.Overrides = lineage.OverridesOf(b, mine)
	silent, err := t.silences(ctx)
	if err != nil {
		return err
	}
	t.out.Clusters = deliveriesOf(template, b, mine, silent)
	t.advise(template)
	return t.members(ctx, template, silent)
}

// asCarried returns a template in the version of its binding, which may differ from the version that
// the control plane prefers: clusters get that version and may not serve another one. It returns the
// template unchanged if that version cannot be read.
func (r reader) asCarried(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) *unstructured.Unstructured {
	ref := b.BindingSpec().Resource
	if ref.APIVersion == template.GetAPIVersion() {
		return template
	}
	carried, err := r.get(ctx, ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return template
	}
	return carried
}

// uncarried says why a template without a binding goes to no cluster.
func (r reader) uncarried(ctx context.Context, template *unstructured.Unstructured) string {
	if !propagation.Propagates(selector.ResourceOf(template), propagation.SkipRules{}) {
		return "Objects of this kind, or in this namespace, stay on the control plane."
	}
	if message := r.untaken(ctx, template); message != "" {
		return "A policy means it, and could not take it up: " + message
	}
	return cmp.Or(objectOf(template, "").Ours(), "No policy carries it to clusters: "+explained(template))
}

// untaken is what a policy says of a template that it could not take up; empty where none
// does, and where policies may not be read.
func (r reader) untaken(ctx context.Context, template *unstructured.Unstructured) (message string) {
	title := objectOf(template, "").String()
	take := func(p policyv1alpha1.Policy) { message = cmp.Or(message, situation.UntakenOf(p, title)) }
	_ = listing.Each(ctx, r.hub, &policyv1alpha1.PropagationPolicyList{}, func(p *policyv1alpha1.PropagationPolicy) { take(p) }, client.InNamespace(template.GetNamespace()))()
	_ = listing.Each(ctx, r.hub, &policyv1alpha1.ClusterPropagationPolicyList{}, func(p *policyv1alpha1.ClusterPropagationPolicy) { take(p) })()
	return message
}

// deliveryOfNamespace finds the Works and members' objects of a namespace, which has no binding.
func (t *tracer) deliveryOfNamespace(ctx context.Context, template *unstructured.Unstructured) error {
	works, err := remains.Works(ctx, t.hub, "Namespace", "", template.GetName())
	if apierrors.IsForbidden(err) {
		t.note("You may not read Works: nothing is said of the clusters that it goes to.")
		return nil
	}
	if err != nil {
		return err
	}
	silent, err := t.silences(ctx)
	if err != nil {
		return err
	}
	t.out.Clusters = deliveriesOfWorks(works, silent)
	return t.members(ctx, template, silent)
}

// worksOrNote returns the Works of a binding; nil, with a note, if the user may not read them.
func (t *tracer) worksOrNote(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	works, err := t.worksOf(ctx, []workv1alpha2.Binding{b})
	switch {
	case apierrors.IsForbidden(err):
		t.note("You may not read Works: what is said of clusters is what the binding says, and overrides are not shown.")
		return nil, nil
	case err != nil:
		return nil, err
	}
	return remains.Recalled(ctx, t.hub, b, append([]*workv1alpha1.Work{}, works[b.GetLabels()[idLabel(b)]]...))
}

// placed records the decision about the binding, and notes why the template is not placed as
// requested.
func (t *tracer) placed(template *unstructured.Unstructured, b workv1alpha2.Binding, works []*workv1alpha1.Work) {
	part := rollup.PartOf(template, b, works, nil)
	out := &lineage.Binding{Object: objectOf(b, ""), Fault: part.Fault, Released: rollup.Released(b)}
	if record, ok := placement.RecordOf(b); ok {
		out.Decided, out.Outcome, out.Message = record.At.UTC().Format(time.RFC3339), record.Reason, record.Message
		out.Moved = lastmove.Data(lastmove.Text(record.LastMove, b.BindingSpec(), lastmove.In(works), time.Time{}), record.LastMove, b.BindingSpec(), template)
	}
	t.out.Binding = out
	switch {
	case out.Released:
		t.note("No policy carries it any more: what runs in clusters runs on, and its edits stay on the control plane. %s", explained(template))
	case part.State != rollup.Healthy:
		t.note("It is not placed as it is wanted: %s. %s", strings.TrimSuffix(part.Reason, "."), explained(template))
	}
	if t.out.Policy == nil {
		for _, by := range b.BindingSpec().RequiredBy {
			t.note("It goes along with what needs it: binding %s/%s.", by.Namespace, by.Name)
		}
	}
}

// advise notes which command shows the cause of a problem in a cluster, if there is no other note.
func (t *tracer) advise(template *unstructured.Unstructured) {
	var unwell []string
	for _, c := range t.out.Clusters {
		if c.State == situation.Failed || c.State == situation.Progressing {
			unwell = append(unwell, c.Cluster)
		}
	}
	if len(t.out.Notes) == 0 && len(unwell) > 0 {
		t.note("It is not well in %s. %s", strings.Join(unwell, ", "), explained(template))
	}
}

// explained returns a sentence with the command that explains the state of a template.
func explained(template *unstructured.Unstructured) string {
	return fmt.Sprintf("flotilla explain %s/%s%s says why.", strings.ToLower(template.GetKind()), template.GetName(), inNamespace(template.GetNamespace()))
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}
