package siblings

import (
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// parents are the siblings that may say of those which cannot be built that these go at the artifact.
type parents struct {
	// known are all variants of each sibling, as it is first.
	known map[client.ObjectKey][]*kustomizev1.Kustomization
	// failed are those of which a variant cannot be built, and children what the others hold.
	failed, children sets.Set[client.ObjectKey]
}

// remaining returns the siblings that may want something although they cannot be built: all that failed, but for those that their
// parents drop. Two that go at one artifact, by two parents, would otherwise wait for each other for ever, as
// there is nothing that could be mended. It is sorted by who was asked first.
func (p parents) remaining(failed []client.ObjectKey) []client.ObjectKey {
	var out []client.ObjectKey
	for _, key := range failed {
		if !p.drop(key, sets.New[client.ObjectKey]()) {
			out = append(out, key)
		}
	}
	return out
}

// drop reports whether a sibling goes at the artifact, as the one that applied it no longer holds it, or goes as well. seen ends circles of
// owners.
func (p parents) drop(key client.ObjectKey, seen sets.Set[client.ObjectKey]) bool {
	if seen.Has(key) || p.children.Has(key) || len(p.known[key]) == 0 {
		return false
	}
	seen.Insert(key)
	child := p.known[key][0]
	owner, owned := inventory.OwnerOf(child)
	if !owned || len(p.known[owner]) == 0 || applier.OptedOut(child) {
		return false
	}
	parent := p.known[owner][0]
	if parent.Spec.Suspend || !holds(parent, key) {
		return false
	}
	if p.failed.Has(owner) {
		return inventory.Deletes(parent) && p.drop(owner, seen)
	}
	return parent.Spec.Prune
}

// holds reports whether a Kustomization has applied another one.
func holds(parent *kustomizev1.Kustomization, child client.ObjectKey) bool {
	entries, err := inventory.Here(parent)
	return err == nil && slices.Contains(KeysIn(entries), child)
}
