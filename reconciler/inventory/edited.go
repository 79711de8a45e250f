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
	// Was is a digest of what it was before: once it is that again nothing is to be reported.
	Was string
	// Gone says that it is deleted.
	Gone bool
	// Nameless says that its name is not to be shown, as text of a Secret is in it.
	Nameless bool
}

// edited is the recorded form of an Edited.
type edited struct {
	ID       string `json:"id"`
	Was      string `json:"was"`
	Gone     bool   `json:"gone,omitempty"`
	Nameless bool   `json:"nameless,omitempty"`
}

// EditedIn returns what others changed or deleted as the status of a Kustomization says. What cannot be read is left
// out.
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

// RecordEdited has the latest outcome of a status, and no other one, say what others changed or deleted. Of many the
// first are enough: what is reported is that there are some.
func RecordEdited(status *kustomizev1.KustomizationStatus, found []Edited) {
	var recorded []edited
	for _, e := range found[:min(len(found), mostRecorded)] {
		recorded = append(recorded, edited{ID: e.ID.String(), Was: e.Was, Gone: e.Gone, Nameless: e.Nameless})
	}
	text := ""
	if len(recorded) > 0 {
		raw, _ := json.Marshal(recorded) // it is made of texts
		text = string(raw)
	}
	recordText(status, gitopsv1alpha1.EditedKey, text, true)
}
