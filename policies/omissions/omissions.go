// Package omissions says what of manifests from Git is not applied.
//
// In goes an object as files have it; out comes what of it is not for files to say, each with the reason.
// Remove takes that out of the object. Nothing is refused here: manifests are often exported from a cluster, and
// what that wrote into them does no harm once it is left out.
package omissions

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Omission is one thing of a manifest that is not applied.
type Omission struct {
	// Path is the field, such as metadata.ownerReferences.
	Path string
	// Why says what it would do, and what to do about it.
	Why string

	within []string // of the object; the last one is removed
}

// owners is what became of owner references: the uid in them is never that of an object on the control plane.
var owners = Omission{
	Path:   "metadata.ownerReferences",
	Why:    "they name owners of another cluster by their UIDs, and what has an owner that is not there is deleted; remove them from the files",
	within: []string{"metadata", "ownerReferences"},
}

// Of returns what of a manifest is not applied.
func Of(manifest map[string]any) []Omission {
	var out []Omission
	if _, has, err := unstructured.NestedFieldNoCopy(manifest, owners.within...); has && err == nil {
		out = append(out, owners)
	}
	return append(out, reservedMetadata(manifest)...)
}

// Remove takes out of an object what is not applied, and returns it.
func Remove(obj *unstructured.Unstructured) []Omission {
	found := Of(obj.Object)
	for _, o := range found {
		unstructured.RemoveNestedField(obj.Object, o.within...)
		if within := o.within[:len(o.within)-1]; len(within) > 1 {
			if left, _, err := unstructured.NestedMap(obj.Object, within...); err == nil && len(left) == 0 {
				unstructured.RemoveNestedField(obj.Object, within...)
			}
		}
	}
	return found
}

// namedObjects is how many objects a text names for each reason.
const namedObjects = 3

// List is what was omitted of several objects. The zero value is nothing.
type List struct{ entries []entry }

type entry struct {
	omission Omission
	objects  []string
}

// Add takes in what was omitted of an object.
func (l *List) Add(object string, o Omission) {
	at := slices.IndexFunc(l.entries, func(e entry) bool { return e.omission.Path == o.Path })
	if at < 0 {
		at, l.entries = len(l.entries), append(l.entries, entry{omission: o})
	}
	l.entries[at].objects = append(l.entries[at].objects, object)
}

// String is such as "metadata.ownerReferences of Deployment/shop/web and 2 more: they name …"; empty for nothing.
func (l *List) String() string {
	var out []string
	for _, e := range l.entries {
		out = append(out, e.omission.Path+" of "+excerpt.Names(e.objects, namedObjects)+": "+e.omission.Why)
	}
	return strings.Join(out, "; ")
}
