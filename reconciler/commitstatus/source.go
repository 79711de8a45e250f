package commitstatus

import (
	"context"
	"errors"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// followedBy returns which source a Kustomization applies, and false for one of a kind that is not followed.
func followedBy(ks *kustomizev1.Kustomization) (inventory.Source, bool) {
	source := inventory.SourceOf(ks)
	_, ok := origins.KindOf(source.Kind)
	return source, ok
}

// sourceOf returns the Kustomization's source; nil if it has none, or one that it may
// not use: what others fetch is theirs to report.
func sourceOf(ctx context.Context, hub client.Reader, ks *kustomizev1.Kustomization, crossNamespace bool) (origins.Object, error) {
	source, ok := followedBy(ks)
	if !ok {
		return nil, nil
	}
	if source.Namespace != ks.Namespace && !crossNamespace {
		return nil, nil
	}
	out, err := origins.Read(ctx, hub, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the source %s: %w", source, err)
	}
	return out, nil
}

// errNoAddress says that a Provider does not say to which repository the commits belong.
var errNoAddress = errors.New("name the repository of its commits in spec.address of the Provider")

// sourceURL returns the address of the Kustomization's repository; empty if it has none. What an artifact says of where it is from
// is no address: whoever pushes it would choose who gets the Provider's token.
func (a alerts) sourceURL(ctx context.Context, ks *kustomizev1.Kustomization, provider string) (string, error) {
	source, err := sourceOf(ctx, a.hub, ks, a.crossNamespace)
	switch {
	case err != nil || source == nil:
		return "", err
	case origins.Of(source).Kind != sourcev1.GitRepositoryKind:
		return "", fmt.Errorf("no commit is told of to the Provider %s, as %s is no Git repository: %w", provider, origins.Of(source), errNoAddress)
	default:
		return origins.FactsOf(source).URL, nil
	}
}

// successor returns the revision that takes the place of the one that was attempted
// last; empty if there is none. Whoever applies it reads it in the source first, and
// notes it in the Kustomization later: between the two the objects may be of either.
func successor(ks *kustomizev1.Kustomization, source origins.Object) string {
	if ks.Spec.Suspend || source == nil {
		return ""
	}
	if revision := origins.Revision(source); revision != ks.Status.LastAttemptedRevision {
		return revision
	}
	return ""
}
