package siblings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// asUpcoming returns a Kustomization as upcoming ones, which a revision is about to write, give it another spec, and whether they do.
// By the spec that it has it may hold what that very revision takes from it.
func asUpcoming(ks *kustomizev1.Kustomization, upcoming []*kustomizev1.Kustomization) (*kustomizev1.Kustomization, bool) {
	i := slices.IndexFunc(upcoming, func(next *kustomizev1.Kustomization) bool {
		return client.ObjectKeyFromObject(next) == client.ObjectKeyFromObject(ks)
	})
	if i < 0 || equality.Semantic.DeepEqual(ks.Spec, upcoming[i].Spec) {
		return ks, false
	}
	next := upcoming[i].DeepCopy()
	next.UID, next.Generation = "", 0 // nothing that was learned is of that
	return next, true
}

// parentPoll is the pause before a parent is looked at again, if the watch missed that it has applied the artifact.
const parentPoll = 5 * time.Second

// AwaitParent returns an error that waits where a Kustomization would remove objects at an artifact with which its parent
// gives it another spec, and has yet to do so: what it drops by the spec that it has may be what it keeps by the other.
func AwaitParent(ctx context.Context, x *Index, ks *kustomizev1.Kustomization, at Artifact, doomed []inventory.Entry) error {
	if len(doomed) == 0 {
		return nil
	}
	parent, err := ledBy(ctx, x, ks, at)
	if err != nil || parent.Name == "" {
		return err
	}
	return loop.Waiting(meta.ProgressingReason, parentPoll, fmt.Errorf("waiting for Kustomization %s, which gives this one another spec at revision %s: until then nothing is removed", parent, at.Revision))
}

// ledBy returns the parent of a Kustomization if that gives it another spec at the artifact and has yet to apply that; the
// zero key for none. One that depends on its child, is suspended or cannot be built leads nobody.
func ledBy(ctx context.Context, x *Index, ks *kustomizev1.Kustomization, at Artifact) (client.ObjectKey, error) {
	key, owned := inventory.OwnerOf(ks)
	own := client.ObjectKeyFromObject(ks)
	if !owned || key == own || at.Digest == "" {
		return client.ObjectKey{}, nil
	}
	parent := &kustomizev1.Kustomization{}
	if err := x.hub.Get(ctx, key, parent); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return client.ObjectKey{}, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		return client.ObjectKey{}, nil
	}
	waitsForThis := slices.ContainsFunc(parent.Spec.DependsOn, func(d kustomizev1.DependencyReference) bool {
		return d.Name == own.Name && cmp.Or(d.Namespace, key.Namespace) == own.Namespace
	})
	if parent.Spec.Suspend || waitsForThis || parent.Status.LastAppliedRevision == at.Revision || !x.Is(parent, own.Namespace, at) {
		return client.ObjectKey{}, nil
	}
	wants, err := x.Wants(ctx, parent, at)
	if _, changes := asUpcoming(ks, wants.Children); err != nil || !changes {
		return client.ObjectKey{}, err
	}
	return key, nil
}
