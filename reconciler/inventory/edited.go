package inventory

import (
	"encoding/json"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Edited is an object that others changed or deleted while its Kustomization is suspended.
type Edited struct {
	ID ID
	// Was is a digest of what it was before. Once the object has that digest again, the edit is dropped.
	Was string
	// Gone says that it is deleted.
	Gone bool
	// Nameless says that its name must not be shown, as it contains text from a Secret.
	Nameless bool
}

// edited is the recorded form of an Edited.
type edited struct {
	ID       string `json:"id"`
	Was      string `json:"was"`
	Gone     bool   `json:"gone,omitempty"`
	Nameless bool   `json:"nameless,omitempty"`
}

// EditedIn returns what others changed or deleted, as the status of a Kustomization records it. Entries that cannot be
// read are left out.
func EditedIn(status kustomizev1.KustomizationStatus) []Edited {
	var recorded []edited
	latest := status.History.Latest()
	if latest == nil || json.Unmarshal([]byte(latest.Metadata[gitopsv1alpha1.EditedKey]), &recorded) != nil {
		return nil
	}
	var out []Edited
	for _, e := range recorded[:min(len(recorded), mostRecorded)] {
		if id, err := object.ParseObjMetadata(e.ID); err == nil {
			out = append(out, Edited{ID: id, Was: e.Was, Gone: e.Gone, Nameless: e.Nameless})
		}
	}
	return out
}

// RecordEdited writes what others changed or deleted into the latest outcome of a status, and removes it from all
// others. Of many, only the first are recorded: they are enough to report that there is drift.
func RecordEdited(status *kustomizev1.KustomizationStatus, found []Edited) {
	var recorded []edited
	for _, e := range found[:min(len(found), mostRecorded)] {
		recorded = append(recorded, edited{ID: e.ID.String(), Was: e.Was, Gone: e.Gone, Nameless: e.Nameless})
	}
	text := ""
	if len(recorded) > 0 {
		raw, _ := json.Marshal(recorded) // strings and booleans can always be encoded
		text = string(raw)
	}
	recordText(status, gitopsv1alpha1.EditedKey, text, true)
}
