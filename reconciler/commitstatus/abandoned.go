package commitstatus

import (
	"context"
	"fmt"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// abandonedPoll is how often it is looked whether a commit that was abandoned halfway still is: what ends that tells the other source.
const abandonedPoll = 10 * time.Second

// abandonedBy returns the Kustomizations of the namespace that wrote a part of the commit, and follow another source by now. They are the
// cache's.
func (s *sources) abandonedBy(ctx context.Context, hub client.Reader) ([]*kustomizev1.Kustomization, error) {
	var list kustomizev1.KustomizationList
	if err := hub.List(ctx, &list, client.InNamespace(s.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Kustomizations: %w", err)
	}
	var out []*kustomizev1.Kustomization
	for i := range list.Items {
		ks := &list.Items[i]
		if inventory.SourceOf(ks) != sourceOfKey(s.key) && s.revision != "" && revisiongate.Announced(ks.Status.Conditions) == s.revision {
			out = append(out, ks)
		}
	}
	return out, nil
}

// abandonedShares are what those have come to that the recipient is told of.
func (s *sources) abandonedShares(t recipient) []comment.Share {
	var out []comment.Share
	for _, ks := range s.abandoned {
		if selects(t.alert, ks) {
			out = append(out, comment.Share{Share: rollup.Share{Name: ks.Name, State: rollup.StateFailure, Reason: reasonOf(ks),
				Description: fmt.Sprintf("half written, and it follows %s by now: suspend it to give that up", inventory.SourceOf(ks))}})
		}
	}
	return out
}
