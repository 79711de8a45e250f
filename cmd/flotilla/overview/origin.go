package overview

import (
	"context"
	"errors"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/clone"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// ownerName and ownerNamespace are the labels of what a Kustomization applies.
const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// gitManager owns the fields that come from Git, as in Flux.
const gitManager = "kustomize-controller"

// origin finds the Kustomization of a template, and the commit and file behind it.
func (t *tracer) origin(ctx context.Context, template *unstructured.Unstructured) error {
	key := client.ObjectKey{Namespace: template.GetLabels()[ownerNamespace], Name: template.GetLabels()[ownerName]}
	if key.Name == "" || key.Namespace == "" {
		t.out.Managers = managersOf(template)
		return nil
	}
	var ks kustomizev1.Kustomization
	switch err := t.hub.Get(ctx, key, &ks); {
	case apierrors.IsNotFound(err):
		t.note("Its labels say that Kustomization %s applied it, and there is no such Kustomization.", key)
		t.out.Managers = managersOf(template)
		return nil
	case apierrors.IsForbidden(err):
		t.note("You may not read Kustomization %s, which applied it.", key)
		return nil
	case err != nil:
		return err
	}
	if entries, err := inventory.Here(&ks); err == nil && !slices.ContainsFunc(entries, func(e inventory.Entry) bool { return e.ID == inventory.IDOf(template) }) {
		t.note("Its labels say that Kustomization %s applied it, and that does not know it: the labels may be copied.", key)
		t.out.Managers = managersOf(template)
		return nil
	}
	t.out.Managers = othersOf(template)
	source, err := t.applier(ctx, &ks)
	if err != nil || source == nil {
		return err
	}
	if slices.Contains(inventory.Leaving(ks.Status), inventory.IDOf(template)) {
		left(t, &ks, template)
		return nil
	}
	t.out.File = t.files.File(ctx, &ks, standing.Revision(&ks), source, template)
	if t.out.Commit != nil {
		t.out.File.LastChange = clone.LastChange(ctx, ".", t.out.Commit.Hash(), t.out.File.Path)
	}
	t.out.File.From(source)
	t.out.File.FromSubmodule(source, standing.Revision(&ks))
	return nil
}

// left says of a template that Git has no more that it stays for now: neither the commit that is on the control plane nor a
// file of that is where it comes from.
func left(t *tracer, ks *kustomizev1.Kustomization, template *unstructured.Unstructured) {
	t.out.Commit = nil
	t.note("It has left the files of Kustomization %s/%s, as of revision %s, and stays for now. %s", ks.Namespace, ks.Name, excerpt.Line(ks.Status.LastAttemptedRevision), explained(template))
}

// managersOf returns the field managers that wrote the template, except for its status. It is never
// empty.
func managersOf(template *unstructured.Unstructured) []string {
	if out := writersOf(template); len(out) > 0 {
		return out
	}
	return []string{"somebody unnamed"}
}

// othersOf returns the field managers that wrote a template besides its Kustomization.
func othersOf(template *unstructured.Unstructured) []string {
	return slices.DeleteFunc(writersOf(template), func(name string) bool { return name == gitManager })
}

// writersOf returns the field managers that wrote a template, sorted. It leaves out writes to the status
// and those of the control plane, but includes scaling.
func writersOf(template *unstructured.Unstructured) []string {
	var out []string
	for _, m := range template.GetManagedFields() {
		if m.Subresource != "status" && m.Manager != "" && m.Manager != "flotillad" {
			out = append(out, m.Manager)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// applier adds a Kustomization to the trace, with its source and the commit that it applied. It returns
// the source; nil if there is none.
func (t *tracer) applier(ctx context.Context, ks *kustomizev1.Kustomization) (origins.Object, error) {
	s := situation.NewSurvey(ks.CreationTimestamp.Time, "")
	s.Kustomization(ks)
	judged := s.Fleet().Kustomizations[0]
	t.out.Applier = &lineage.Applier{
		Object: lineage.Object{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind, Namespace: ks.Namespace, Name: ks.Name},
		Path:   judged.Path, Revision: judged.Revision, State: judged.State, Message: judged.Message,
	}
	at := inventory.SourceOf(ks)
	source, err := origins.Read(ctx, t.hub, at)
	switch {
	case errors.Is(err, origins.ErrKind):
		t.note("Its source is a %s, which the fleet does not follow yet.", at.Kind)
		return nil, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		t.note("Its source, %s, is not there, or you may not read it.", at)
		return nil, nil
	case err != nil:
		return nil, err
	}
	t.source(source)
	t.out.Commit = lineage.CommitOf(ks, source)
	return source, nil
}

func (t *tracer) source(of origins.Object) {
	s, at := situation.NewSurvey(of.GetCreationTimestamp().Time, ""), origins.Of(of)
	s.Source(of)
	judged := s.Fleet().Sources[0]
	t.out.Source = &lineage.Source{
		Object: lineage.Object{APIVersion: sourcev1.GroupVersion.String(), Kind: at.Kind, Namespace: at.Namespace, Name: at.Name},
		URL:    judged.URL, Reference: origins.FactsOf(of).Reference, State: judged.State, Message: judged.Message, History: origins.FactsOf(of).History,
	}
}

// fetched traces a source: its commit.
func (t *tracer) fetched(obj *unstructured.Unstructured, kind origins.Kind) error {
	of := kind.New()
	if err := into(obj, of); err != nil {
		return err
	}
	t.source(of)
	if a := of.GetArtifact(); a != nil {
		t.out.Commit = lineage.FetchedCommit(a.Revision, of)
	}
	return nil
}

// kustomization traces a Kustomization: what it applies, and by what it is applied.
func (t *tracer) kustomization(ctx context.Context, obj *unstructured.Unstructured) error {
	var ks kustomizev1.Kustomization
	if err := into(obj, &ks); err != nil {
		return err
	}
	if _, err := t.applier(ctx, &ks); err != nil {
		return err
	}
	if name := ks.Labels[ownerName]; name != "" {
		t.note("It is applied by Kustomization %s/%s itself: flotilla trace kustomization/%s -n %s", ks.Labels[ownerNamespace], name, name, ks.Labels[ownerNamespace])
	}
	t.note("What it applies: flotilla tree kustomization/%s -n %s", ks.Name, ks.Namespace)
	return nil
}
