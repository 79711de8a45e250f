package inventory

import (
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// mostRecorded is how many objects a status names: what is removed from a cluster goes
// together.
const mostRecorded = 1000

// Removed returns what left the revisions of a Kustomization and clusters may still hold, as its
// status says. What cannot be read is left out.
func Removed(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.RemovedKey)
}

// RecordRemoved has the latest outcome of a status, and no other one, say what clusters may still
// hold: removed, or, where nobody has looked, what an earlier outcome says.
func RecordRemoved(status *kustomizev1.KustomizationStatus, removed []ID, looked bool) {
	record(status, gitopsv1alpha1.RemovedKey, removed, looked)
}

// Leaving returns what left the revision of a Kustomization and has yet to be removed from the hub, or
// taken by others, as its status says.
func Leaving(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.LeavingKey)
}

// LetGo returns those of Leaving that a revision was allowed to drop, and that stay until they are replaced: not what
// is to change hands, or may be.
func LetGo(status kustomizev1.KustomizationStatus) []ID {
	undecided := recorded(status, gitopsv1alpha1.UndecidedKey)
	return slices.DeleteFunc(Leaving(status), func(id ID) bool { return slices.Contains(undecided, id) })
}

// RecordLeaving has the latest outcome of a status, and no other one, say what is leaving, and what of that is
// undecided, or, where nobody has looked, what an earlier outcome says.
func RecordLeaving(status *kustomizev1.KustomizationStatus, leaving, undecided []ID, looked bool) {
	record(status, gitopsv1alpha1.LeavingKey, leaving, looked)
	record(status, gitopsv1alpha1.UndecidedKey, undecided, looked)
}

func recorded(status kustomizev1.KustomizationStatus, key string) []ID {
	if latest := status.History.Latest(); latest != nil {
		return parse(latest.Metadata[key])
	}
	return nil
}

func parse(texts string) []ID {
	var ids []ID
	for text := range strings.SplitSeq(texts, ",") {
		if id, err := object.ParseObjMetadata(text); err == nil && len(ids) < mostRecorded {
			ids = append(ids, id)
		}
	}
	return ids
}

func record(status *kustomizev1.KustomizationStatus, key string, ids []ID, looked bool) {
	text := ""
	for _, outcome := range status.History {
		if text == "" {
			text = outcome.Metadata[key]
		}
		delete(outcome.Metadata, key)
	}
	if looked {
		var texts []string
		for _, id := range ids[:min(len(ids), mostRecorded)] {
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
	latest.Metadata[key] = text
}
