package inventory

import (
	"encoding/json"

	"github.com/fluxcd/cli-utils/pkg/object"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Terminating is an object that left the revisions of a Kustomization and that the control plane is still deleting.
type Terminating struct {
	ID ID
	// UID distinguishes it from a new object of the same name.
	UID types.UID
	// Keeps is a text about what keeps it from being gone; empty if that is not known.
	Keeps string
	// Nameless says that its name must not be shown, as it contains text from a Secret.
	Nameless bool
	// Ahead says that nobody has deleted it yet, and it may still stay: a Kustomization that is being deleted holds it.
	Ahead bool
}

// terminating is the recorded form of a Terminating, or, with only More set, of that many that are not named.
type terminating struct {
	ID       string    `json:"id,omitempty"`
	UID      types.UID `json:"uid,omitempty"`
	Keeps    string    `json:"keeps,omitempty"`
	Nameless bool      `json:"nameless,omitempty"`
	Ahead    bool      `json:"ahead,omitempty"`
	More     int       `json:"more,omitempty"`
}

// TerminatingIn returns what is being deleted, as the status of a Kustomization records it, and how many more the
// status counts. Entries that cannot be read are left out.
func TerminatingIn(status kustomizev1.KustomizationStatus) (out []Terminating, beyond int) {
	var recorded []terminating
	latest := status.History.Latest()
	if latest == nil || json.Unmarshal([]byte(latest.Metadata[gitopsv1alpha1.TerminatingKey]), &recorded) != nil {
		return nil, 0
	}
	for _, t := range recorded {
		id, err := object.ParseObjMetadata(t.ID)
		switch {
		case t.ID == "" && t.More > 0:
			beyond = t.More
		case err == nil && len(out) < mostRecorded:
			out = append(out, Terminating{ID: id, UID: t.UID, Keeps: t.Keeps, Nameless: t.Nameless, Ahead: t.Ahead})
		}
	}
	return out, beyond
}

// RecordTerminating writes what is being deleted into the latest outcome of a status, and removes it from all others.
// If looked is false, it keeps what is recorded. Of many, at least one of each kind is named.
func RecordTerminating(status *kustomizev1.KustomizationStatus, found []Terminating, checked bool) {
	var recorded []terminating
	for _, t := range firstOfKinds(found) {
		if len(recorded) == mostRecorded {
			recorded = append(recorded, terminating{More: len(found) - mostRecorded})
			break
		}
		recorded = append(recorded, terminating{ID: t.ID.String(), UID: t.UID, Keeps: t.Keeps, Nameless: t.Nameless, Ahead: t.Ahead})
	}
	text := ""
	if len(recorded) > 0 {
		raw, _ := json.Marshal(recorded) // strings, booleans and numbers can always be encoded
		text = string(raw)
	}
	recordText(status, gitopsv1alpha1.TerminatingKey, text, checked)
}

// firstOfKinds returns the first of each kind, and then the others.
func firstOfKinds(found []Terminating) []Terminating {
	var first, rest []Terminating
	known := map[schema.GroupKind]bool{}
	for _, t := range found {
		if known[t.ID.GroupKind] {
			rest = append(rest, t)
			continue
		}
		known[t.ID.GroupKind] = true
		first = append(first, t)
	}
	return append(first, rest...)
}
