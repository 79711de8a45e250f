package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/tint"
)

// rehearsal compares the answers of the control plane's rules with those of the changed rules.
type rehearsal struct {
	hub           client.Client
	fleet         *fleet.Flags
	before, after customization.Trial
	members       map[string]client.Client
	unreachable   map[string]error

	objects int
	changes []customization.Change
}

// runDiff shows what the customizations would change for the objects of their
// kinds, on the control plane and in the clusters.
func (f *interpretFlags) runDiff(ctx context.Context, cmd *cobra.Command, sources []customization.Source) error {
	hub, err := f.hub.Client()
	if err != nil {
		return fleet.Describe(err)
	}
	stored, err := customizationsOf(ctx, hub)
	if err != nil {
		return fleet.Describe(err)
	}
	r := &rehearsal{hub: hub, fleet: f.hub, members: map[string]client.Client{}, unreachable: map[string]error{}}
	r.before.Stack = customization.NewStack(machine(), stored)
	r.after.Stack = customization.NewStack(machine(), laid(stored, customization.All(sources)))
	r.after.Sources = sources
	kinds := customization.Kinds(sources)
	byName := func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), byName) {
		if err := r.kind(ctx, gvk); err != nil {
			return fleet.Describe(err)
		}
	}
	if err := r.write(f.output, cmd.OutOrStdout()); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.unreachable)) {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: what is in cluster %s was not looked at: %v\n", name, r.unreachable[name]); err != nil {
			return err
		}
	}
	faults := slices.DeleteFunc(slices.Clone(r.changes), func(c customization.Change) bool { return c.Error == "" })
	if len(faults) > 0 {
		return fmt.Errorf("%s would fail", count(len(faults), "answer"))
	}
	_, err = fmt.Fprintf(cmd.ErrOrStderr(), "%s looked at: %s would change\n", count(r.objects, "object"), count(len(r.changes), "answer"))
	return err
}

// laid returns stored with the given customizations, which replace those of the same name.
func laid(stored, given []*configv1alpha1.ResourceInterpreterCustomization) []*configv1alpha1.ResourceInterpreterCustomization {
	out := slices.DeleteFunc(slices.Clone(stored), func(s *configv1alpha1.ResourceInterpreterCustomization) bool {
		return slices.ContainsFunc(given, func(g *configv1alpha1.ResourceInterpreterCustomization) bool { return g.Name == s.Name })
	})
	return append(out, given...)
}

// kind compares the answers for every object of a kind on the control plane. A kind that is not
// served has none.
func (r *rehearsal) kind(ctx context.Context, gvk schema.GroupVersionKind) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	var all []unstructured.Unstructured
	err := pages(ctx, r.hub, list, func(page *unstructured.UnstructuredList) { all = append(all, page.Items...) })
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range all {
		if err := r.object(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// object compares all answers about a template and about its objects in clusters.
func (r *rehearsal) object(ctx context.Context, template *unstructured.Unstructured) error {
	r.objects++
	unstructured.RemoveNestedField(template.Object, "metadata", "managedFields")
	clusters, items, err := r.placed(ctx, template)
	if err != nil {
		return err
	}
	questions := customization.Questions("", customization.Input{Desired: template, Items: items})
	for _, cluster := range clusters {
		in := customization.Input{Desired: template}
		if cluster.Replicas > 0 {
			in.Replicas = &cluster.Replicas
			revised := customization.Questions(cluster.Name, in)
			questions = append(questions, slices.DeleteFunc(revised, func(q customization.Question) bool {
				return q.Operation.Name != configv1alpha1.InterpreterOperationReviseReplica
			})...)
		}
		if in.Observed = r.observed(ctx, cluster.Name, template); in.Observed != nil {
			in.Replicas = nil
			questions = append(questions, customization.Questions(cluster.Name, in)...)
		}
	}
	for _, q := range questions {
		change, err := customization.Compare(r.before, r.after, q)
		if err != nil {
			return err
		}
		if change != nil {
			r.changes = append(r.changes, *change)
		}
	}
	return nil
}

// placed returns the clusters of a template and their reports; nil if it has no binding, or if the
// user may not read it.
func (r *rehearsal) placed(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.TargetCluster, []workv1alpha2.AggregatedStatusItem, error) {
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	if template.GetNamespace() == "" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	key := client.ObjectKey{Namespace: template.GetNamespace(), Name: workv1alpha2.BindingName(template.GetKind(), template.GetName())}
	err := r.hub.Get(ctx, key, b)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil, nil
	}
	return b.BindingSpec().Clusters, b.BindingStatus().AggregatedStatus, err
}

// observed returns a cluster's object of a template, read through the control plane; nil if it
// cannot be read.
func (r *rehearsal) observed(ctx context.Context, cluster string, template *unstructured.Unstructured) *unstructured.Unstructured {
	if r.unreachable[cluster] != nil {
		return nil
	}
	member, err := r.member(cluster)
	if err == nil {
		out := &unstructured.Unstructured{}
		out.SetGroupVersionKind(template.GroupVersionKind())
		err = member.Get(ctx, client.ObjectKeyFromObject(template), out)
		if err == nil {
			unstructured.RemoveNestedField(out.Object, "metadata", "managedFields")
			return out
		}
	}
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status) || !apierrors.IsNotFound(err):
		r.unreachable[cluster] = err
	case status.Status().Details == nil || status.Status().Details.Name != template.GetName():
		r.unreachable[cluster] = errors.New("the control plane does not serve clusters/proxy")
	}
	return nil
}

func (r *rehearsal) member(cluster string) (client.Client, error) {
	if member := r.members[cluster]; member != nil {
		return member, nil
	}
	cfg, err := r.fleet.Server(cluster, explainTimeout).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	member, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err == nil {
		r.members[cluster] = member
	}
	return member, err
}

// write writes the changes.
func (r *rehearsal) write(format string, out io.Writer) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(slices.Concat([]customization.Change{}, r.changes))
	case "yaml":
		data, err := yaml.Marshal(slices.Concat([]customization.Change{}, r.changes))
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	}
	printer := customization.Printer{Out: out, Color: tint.Wanted(out)}
	var all []error
	for _, c := range r.changes {
		all = append(all, printer.Change(c))
	}
	return errors.Join(all...)
}
