package inventory

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// generatedName matches a name that kustomize generates: it ends in a hash of the content, in kustomize's alphabet.
var generatedName = regexp.MustCompile(`^(.+)-[2456789bcdfghkmt]{10}$`)

// generatedKinds are the kinds that kustomize generates.
var generatedKinds = []schema.GroupKind{{Kind: "ConfigMap"}, {Kind: "Secret"}}

// generatedFrom returns the ID of a generated object without the hash in its name; false if it is not generated.
func generatedFrom(id ID) (ID, bool) {
	match := generatedName.FindStringSubmatch(id.Name)
	if match == nil || !slices.Contains(generatedKinds, id.GroupKind) {
		return ID{}, false
	}
	id.Name = match[1]
	return id, true
}

// WithoutRegenerated returns the removed entries without those that kustomize has generated again with new content:
// these are among the desired ones with another hash in their names, and nothing is lost.
func WithoutRegenerated(removed, desired []Entry) []Entry {
	anew := map[ID]bool{}
	for _, e := range desired {
		if from, is := generatedFrom(e.ID); is {
			anew[from] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(removed), func(e Entry) bool {
		from, is := generatedFrom(e.ID)
		return is && anew[from]
	})
}
