package inventory

import (
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// mostRemoved is how many removed objects a status names: what is removed from a cluster goes
// together.
const mostRemoved = 100

// Removed returns what left the revisions of a Kustomization and clusters may still hold, as its
// status says. What cannot be read is left out.
func Removed(status kustomizev1.KustomizationStatus) []ID {
	latest := status.History.Latest()
	if latest == nil {
		return nil
	}
	var ids []ID
	for text := range strings.SplitSeq(latest.Metadata[gitopsv1alpha1.RemovedKey], ",") {
		if id, err := object.ParseObjMetadata(text); err == nil && len(ids) < mostRemoved {
			ids = append(ids, id)
		}
	}
	return ids
}

// RecordRemoved has the latest outcome of a status, and no other one, say what clusters may still
// hold: removed, or, where nobody has looked, what an earlier outcome says.
func RecordRemoved(status *kustomizev1.KustomizationStatus, removed []ID, looked bool) {
	text := ""
	for _, outcome := range status.History {
		if text == "" {
			text = outcome.Metadata[gitopsv1alpha1.RemovedKey]
		}
		delete(outcome.Metadata, gitopsv1alpha1.RemovedKey)
	}
	if looked {
		var texts []string
		for _, id := range removed[:min(len(removed), mostRemoved)] {
			texts = append(texts, id.String())
		}
		text = strings.Join(texts, ",")
	}
	latest := status.History.Latest()
	if latest == nil || text == "" {
		return
	}
	if latest.Metadata == nil {
		latest.Metadata = map[string]string{}
	}
	latest.Metadata[gitopsv1alpha1.RemovedKey] = text
}
