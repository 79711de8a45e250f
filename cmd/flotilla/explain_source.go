package main

import (
	"context"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// behind adds to an explanation, before all else, that Git says something else by now than the template on the
// control plane, or than what clusters are given of it. Who may not read its Kustomization is not told.
func behind(ctx context.Context, hub client.Reader, template *unstructured.Unstructured, e explain.Explanation) explain.Explanation {
	owner, owned := inventory.OwnerOf(template)
	if !owned {
		return e
	}
	ks := &kustomizev1.Kustomization{}
	if hub.Get(ctx, owner, ks) != nil {
		return e
	}
	id := inventory.IDOf(template)
	entries, err := inventory.Read(ks.Status.Inventory)
	if err != nil || !slices.ContainsFunc(entries, func(entry inventory.Entry) bool { return entry.ID == id }) {
		return e // it only says so
	}
	if b := situation.BehindOf(ks, fetched(ctx, hub, ks)); b.Reason != "" {
		e.Problems = slices.Insert(slices.Clone(e.Problems), 0, explain.Problem{Reason: b.Reason, Message: b.Message, Next: b.Next})
	}
	return e
}

// fetched is the revision that the source of a Kustomization is at; empty where that is not known.
func fetched(ctx context.Context, hub client.Reader, ks *kustomizev1.Kustomization) string {
	source := &sourcev1.GitRepository{}
	if ks.Spec.SourceRef.Kind != sourcev1.GitRepositoryKind || hub.Get(ctx, inventory.SourceOf(ks), source) != nil || source.Status.Artifact == nil {
		return ""
	}
	return source.Status.Artifact.Revision
}
