package kustomizations

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
)

// ForEvents returns a Kustomization as the object of its Events: with what the artifact of a revision was made from, also of a revision that
// could not be built, which is in no history.
func ForEvents(ks *kustomizev1.Kustomization, revision, origin string) *kustomizev1.Kustomization {
	if origin == "" {
		return ks
	}
	out := ks.DeepCopy()
	out.Status.History = append(out.Status.History, meta.Snapshot{Metadata: map[string]string{"revision": revision, "originRevision": origin}})
	return out
}
