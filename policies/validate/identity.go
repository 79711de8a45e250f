package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An Identity is how the objects of a kind are distinguished for good: by an id in
// a label. What was made for an object is found by it, so it never changes. The
// zero value is for kinds that have none.
type Identity struct {
	// Label holds the id.
	Label string
	// Own gives an object that has none yet an id even where it brings one.
	Own bool
}

// Give sees that obj has its id: on creation, when old is nil, the one that
// newID returns unless it brings one, later the one that it had.
func (i Identity) Give(obj, old metav1.Object, newID func() string) {
	if i.Label == "" {
		return
	}
	id, had := obj.GetLabels()[i.Label], ""
	if old != nil {
		had = old.GetLabels()[i.Label]
	}
	switch {
	case id == "" && had != "":
		setLabel(obj, i.Label, had)
	case id == "", had == "" && i.Own:
		setLabel(obj, i.Label, newID())
	}
}

// Check refuses to change the id; old is nil on creation.
func (i Identity) Check(obj, old metav1.Object) field.ErrorList {
	if i.Label == "" || old == nil {
		return nil
	}
	before, now := old.GetLabels()[i.Label], obj.GetLabels()[i.Label]
	if before == "" || before == now {
		return nil
	}
	path := field.NewPath("metadata", "labels").Key(i.Label)
	return field.ErrorList{field.Invalid(path, now, "label "+i.Label+" is immutable")}
}
