package siblings

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Latest returns the latest artifact of a Kustomization's source, without a digest if there is none, or no source; and
// the objects whose deletion its commit allows, separated by commas.
func (x *Index) Latest(ctx context.Context, ks *kustomizev1.Kustomization) (at Artifact, allows string, err error) {
	var repository sourcev1.GitRepository
	at.Source = inventory.SourceOf(ks)
	if err := x.hub.Get(ctx, at.Source.ObjectKey, &repository); client.IgnoreNotFound(err) != nil {
		return at, "", fmt.Errorf("read the source %s: %w", at.Source, err)
	}
	if artifact := repository.Status.Artifact; artifact != nil {
		at.Digest, at.Revision = artifact.Digest, artifact.Revision
		allows = artifact.Metadata[gitopsv1alpha1.CommitAllowDeleteKey]
	}
	return at, allows, nil
}

// Kept returns which of the objects of a Kustomization stay if it is deleted, as others of its source want them. See
// Query for upcoming and going.
func (x *Index) Kept(ctx context.Context, of *kustomizev1.Kustomization, owned []inventory.Entry, upcoming []*kustomizev1.Kustomization, going []client.ObjectKey) (map[inventory.ID]bool, error) {
	at, _, err := x.Latest(ctx, of)
	if err != nil {
		return nil, err
	}
	answer, err := x.Ask(ctx, Query{Of: of, At: at, Objects: owned, Upcoming: upcoming, Going: going})
	out := make(map[inventory.ID]bool, len(answer.Successors))
	for id := range answer.Successors {
		out[id] = true
	}
	return out, err
}
