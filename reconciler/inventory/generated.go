package inventory

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// generatedName is a name as kustomize generates it: with a hash of the content, in its alphabet.
var generatedName = regexp.MustCompile(`^(.+)-[2456789bcdfghkmt]{10}$`)

// generatedKinds are the kinds that kustomize generates.
var generatedKinds = []schema.GroupKind{{Kind: "ConfigMap"}, {Kind: "Secret"}}

// generatedFrom is what a generated object is without the hash in its name; false of what is not generated.
func generatedFrom(id ID) (ID, bool) {
	match := generatedName.FindStringSubmatch(id.Name)
	if match == nil || !slices.Contains(generatedKinds, id.GroupKind) {
		return ID{}, false
	}
	id.Name = match[1]
	return id, true
}

// WithoutRegenerated returns the removed entries without those that kustomize generated, and generates again from another
// content: they have another name among the desired ones, and nothing is lost by that.
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
