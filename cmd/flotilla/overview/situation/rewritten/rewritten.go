// Package rewritten tells of which sources the history was rewritten, or moved back, and taken all the same.
//
// In go sources and what their artifacts say of that; out come one text about them and what can be done. A source whose guard
// holds such a revision back is a problem, and told by others.
package rewritten

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/lineage"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Sources are those of which it is told.
type Sources struct {
	ids   []inventory.ID
	first string // what is said of the first one
}

// Add adds a source by what its artifact says of its history; nothing for one that follows the one before, as far as is known.
func (s *Sources) Add(of inventory.Source, history string) {
	if !lineage.Rewrites(history) {
		return
	}
	if len(s.ids) == 0 {
		s.first = history
	}
	s.ids = append(s.ids, inventory.ID{GroupKind: schema.GroupKind{Kind: of.Kind}, Namespace: of.Namespace, Name: of.Name})
}

// Text returns of which source to tell, what, and how such a revision is held back from now on; false for none.
func (s *Sources) Text() (of inventory.ID, message, next string, some bool) {
	if len(s.ids) == 0 {
		return inventory.ID{}, "", "", false
	}
	of = s.ids[0]
	return of, s.first + ": that was taken" + wording.Besides(s.ids), "if nobody meant it, see who pushed; to have such held back: flotilla annotate " + strings.ToLower(of.GroupKind.Kind) + " " +
		of.Name + wording.InNamespace(of.Namespace) + " " + gitopsv1alpha1.RollbackProtectionAnnotation + "=" + gitopsv1alpha1.RollbackProtectionHold, true
}
