package inventory

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// mostRecorded is how many objects of each sort a status names.
const mostRecorded = 1000

var kustomizations = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()

// OfKustomization identifies a Kustomization.
func OfKustomization(key client.ObjectKey) ID {
	return ID{GroupKind: kustomizations, Namespace: key.Namespace, Name: key.Name}
}

// Removed returns what left the revisions of a Kustomization and clusters may still hold, as its
// status says. What cannot be read is left out.
func Removed(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.RemovedKey)
}

// RemovedBeyond returns how many more there are than Removed names.
func RemovedBeyond(status kustomizev1.KustomizationStatus) int {
	latest := status.History.Latest()
	if latest == nil {
		return 0
	}
	text := latest.Metadata[gitopsv1alpha1.RemovedKey]
	count, found := strings.CutPrefix(text[strings.LastIndex(text, ",")+1:], "+")
	n, err := strconv.Atoi(count)
	if !found || err != nil {
		return 0
	}
	return max(n, 0)
}

// RecordRemoved has the latest outcome of a status, and no other one, say what clusters may still
// hold: removed, or, where nobody has looked, what an earlier outcome says. Of many, Kustomizations are named before
// others, as what they applied is found by them, and what is not named is counted.
func RecordRemoved(status *kustomizev1.KustomizationStatus, removed []ID, looked bool) {
	var first, rest []ID
	for _, id := range removed {
		if id.GroupKind == kustomizations {
			first = append(first, id)
		} else {
			rest = append(rest, id)
		}
	}
	text := texts(append(first[:min(len(first), mostRecorded)], rest[:min(len(rest), mostRecorded)]...))
	if beyond := Unnamed(removed); beyond > 0 {
		text += ",+" + strconv.Itoa(beyond)
	}
	recordText(status, gitopsv1alpha1.RemovedKey, text, looked)
}

// Leaving returns what left the revision of a Kustomization and has yet to be removed from the hub, or
// taken by others, as its status says.
func Leaving(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.LeavingKey)
}

// LetGo returns those of Leaving that a revision was allowed to drop, and that stay until they are replaced: not what
// is to change hands, or may be.
func LetGo(status kustomizev1.KustomizationStatus) []ID {
	undecided := Undecided(status)
	return slices.DeleteFunc(Leaving(status), func(id ID) bool { return slices.Contains(undecided, id) })
}

// Undecided returns what is to change hands, or may be, as a status says, and so has not been let go of.
func Undecided(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.UndecidedKey)
}

// RecordUndecided has the latest outcome of a status, and no other one, say what is undecided.
func RecordUndecided(status *kustomizev1.KustomizationStatus, ids []ID) {
	record(status, gitopsv1alpha1.UndecidedKey, ids, true)
}

// Sorted are the identities of a set, in the order of entries.
func Sorted(ids map[ID]bool) []ID {
	out := slices.Collect(maps.Keys(ids))
	SortIDs(out)
	return out
}

// AllRecorded reports whether so many objects as are recorded of a sort are all there are.
func AllRecorded(ids []ID) bool { return len(ids) < mostRecorded }

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
		if id, err := object.ParseObjMetadata(text); err == nil && len(ids) < 2*mostRecorded {
			ids = append(ids, id)
		}
	}
	return ids
}

func texts(ids []ID) string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, id.String())
	}
	return strings.Join(out, ",")
}

func record(status *kustomizev1.KustomizationStatus, key string, ids []ID, looked bool) {
	recordText(status, key, texts(ids[:min(len(ids), mostRecorded)]), looked)
}

// recordText has the latest outcome alone say a text, or, where nobody has looked, what an earlier one says.
func recordText(status *kustomizev1.KustomizationStatus, key, text string, looked bool) {
	had := ""
	for _, outcome := range status.History {
		if had == "" {
			had = outcome.Metadata[key]
		}
		delete(outcome.Metadata, key)
	}
	if !looked {
		text = had
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

// Unnamed is how many of the objects RecordRemoved counts and does not name.
func Unnamed(removed []ID) int {
	first := 0
	for _, id := range removed {
		if id.GroupKind == kustomizations {
			first++
		}
	}
	return max(first-mostRecorded, 0) + max(len(removed)-first-mostRecorded, 0)
}
