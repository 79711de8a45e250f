package commitstatus

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// sourceKeyOf returns which GitRepository a Kustomization applies, and false for none.
func sourceKeyOf(ks *kustomizev1.Kustomization) (client.ObjectKey, bool) {
	source := inventory.SourceOf(ks)
	return source.ObjectKey, source.Kind == sourcev1.GitRepositoryKind
}

// sourceOf returns the Kustomization's repository; nil if it has none, or one that it may
// not use: what others fetch is theirs to report.
func sourceOf(ctx context.Context, hub client.Reader, ks *kustomizev1.Kustomization, crossNamespace bool) (*sourcev1.GitRepository, error) {
	key, ok := sourceKeyOf(ks)
	if !ok {
		return nil, nil
	}
	if key.Namespace != ks.Namespace && !crossNamespace {
		return nil, nil
	}
	repository := &sourcev1.GitRepository{}
	err := hub.Get(ctx, key, repository)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the source %s: %w", key, err)
	}
	return repository, nil
}

// sourceURL returns the address of the Kustomization's repository; empty if it has none.
func (a alerts) sourceURL(ctx context.Context, ks *kustomizev1.Kustomization) (string, error) {
	repository, err := sourceOf(ctx, a.hub, ks, a.crossNamespace)
	if err != nil || repository == nil {
		return "", err
	}
	return repository.Spec.URL, nil
}

// successor returns the revision that takes the place of the one that was attempted
// last; empty if there is none. Whoever applies it reads it in the source first, and
// notes it in the Kustomization later: between the two the objects may be of either.
func successor(ks *kustomizev1.Kustomization, repository *sourcev1.GitRepository) string {
	if ks.Spec.Suspend || repository == nil || repository.Status.Artifact == nil {
		return ""
	}
	if revision := repository.Status.Artifact.Revision; revision != ks.Status.LastAttemptedRevision {
		return revision
	}
	return ""
}
