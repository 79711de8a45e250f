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

// mostRecorded is how many objects of each sort a status names, so that it does not outgrow what the store takes.
const mostRecorded = 1000

var kustomizations = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind()

// OfKustomization returns the ID of a Kustomization.
func OfKustomization(key client.ObjectKey) ID {
	return ID{GroupKind: kustomizations, Namespace: key.Namespace, Name: key.Name}
}

// Removed returns what left the revisions of a Kustomization and clusters may still hold, as its
// status records it. Entries that cannot be read are left out.
func Removed(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.RemovedKey)
}

// RemovedBeyond returns how many more the status counts than Removed names.
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

// RecordRemoved writes what clusters may still hold into the latest outcome of a status, and removes it from all
// others. If looked is false, it keeps what is recorded. Of many, Kustomizations are named before others, as they prove
// who applied what else is left; what is not named is counted.
func RecordRemoved(status *kustomizev1.KustomizationStatus, removed []ID, checked bool) {
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
	recordText(status, gitopsv1alpha1.RemovedKey, text, checked)
}

// Leaving returns what left the revision of a Kustomization and has yet to be deleted on the hub, or
// taken over by others, as its status records it.
func Leaving(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.LeavingKey)
}

// LetGo returns those of Leaving that a revision was allowed to drop, and that stay until they are replaced. What
// others want, or may want, is not among them.
func LetGo(status kustomizev1.KustomizationStatus) []ID {
	undecided := Undecided(status)
	return slices.DeleteFunc(Leaving(status), func(id ID) bool { return slices.Contains(undecided, id) })
}

// Undecided returns those of Leaving that others want, or may want, as a status records it. Their deletion has not been
// allowed.
func Undecided(status kustomizev1.KustomizationStatus) []ID {
	return recorded(status, gitopsv1alpha1.UndecidedKey)
}

// RecordUndecided writes what is undecided into the latest outcome of a status, and removes it from all others.
func RecordUndecided(status *kustomizev1.KustomizationStatus, ids []ID) {
	record(status, gitopsv1alpha1.UndecidedKey, ids, true)
}

// Sorted returns the identities of a set, in the order of entries.
func Sorted(ids map[ID]bool) []ID {
	out := slices.Collect(maps.Keys(ids))
	SortIDs(out)
	return out
}

// AllRecorded reports whether the recorded objects of a sort are all that there are, and the record was not cut.
func AllRecorded(ids []ID) bool { return len(ids) < mostRecorded }

// RecordLeaving writes what is leaving, and what of that is undecided, into the latest outcome of a status, and removes
// it from all others. If looked is false, it keeps what is recorded.
func RecordLeaving(status *kustomizev1.KustomizationStatus, leaving, undecided []ID, checked bool) {
	record(status, gitopsv1alpha1.LeavingKey, leaving, checked)
	record(status, gitopsv1alpha1.UndecidedKey, undecided, checked)
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

func record(status *kustomizev1.KustomizationStatus, key string, ids []ID, checked bool) {
	recordText(status, key, texts(ids[:min(len(ids), mostRecorded)]), checked)
}

// recordText writes a text into the latest outcome of a status, and removes it from all others. If looked is false, it
// moves the text that is recorded.
func recordText(status *kustomizev1.KustomizationStatus, key, text string, checked bool) {
	had := ""
	for _, outcome := range status.History {
		if had == "" {
			had = outcome.Metadata[key]
		}
		delete(outcome.Metadata, key)
	}
	if !checked {
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

// Unnamed returns how many of the objects RecordRemoved only counts.
func Unnamed(removed []ID) int {
	first := 0
	for _, id := range removed {
		if id.GroupKind == kustomizations {
			first++
		}
	}
	return max(first-mostRecorded, 0) + max(len(removed)-first-mostRecorded, 0)
}
