package siblings

import (
	"context"
	"errors"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Latest returns the latest artifact of a source, without a digest if there is none, or no source; and
// the objects whose deletion its commit allows, separated by commas.
func (x *Index) Latest(ctx context.Context, of inventory.Source) (at Artifact, allows string, err error) {
	at.Source = of
	source, err := origins.Read(ctx, x.hub, at.Source)
	switch {
	case errors.Is(err, origins.ErrKind), apierrors.IsNotFound(err):
		return at, "", nil
	case err != nil:
		return at, "", fmt.Errorf("read the source %s: %w", at.Source, err)
	}
	if artifact := source.GetArtifact(); artifact != nil {
		at.Digest, at.Revision = artifact.Digest, artifact.Revision
		allows = artifact.Metadata[gitopsv1alpha1.CommitAllowDeleteKey]
	}
	return at, allows, nil
}

// Kept returns which of the objects of a Kustomization stay if it is deleted, as others of its source, or of a former one, want them. See
// Query for upcoming and going.
func (x *Index) Kept(ctx context.Context, of *kustomizev1.Kustomization, owned []inventory.Entry, upcoming []*kustomizev1.Kustomization, going []client.ObjectKey) (map[inventory.ID]bool, error) {
	at, _, err := x.Latest(ctx, inventory.SourceOf(of))
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

// Held returns what all Kustomizations of a source have applied, those included that are about to go.
func Held(ctx context.Context, hub client.Reader, source inventory.Source) ([]inventory.Entry, error) {
	all, err := list(ctx, hub)
	if err != nil {
		return nil, err
	}
	var out []inventory.Entry
	for i := range all {
		if inventory.SourceOf(&all[i]) != source {
			continue
		}
		if held, err := inventory.Read(all[i].Status.Inventory); err == nil { // a broken one is reported by its own run
			out = append(out, held...)
		}
	}
	return out, nil
}
