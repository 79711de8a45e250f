package propagation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// Hint returns a text to follow a name that does not exist, with the one of names
// that may be meant: " (did you mean west?)". It is empty where none is near.
func Hint(word string, names []string) string {
	if len(word) > longestObject {
		return ""
	}
	return DidYouMean(Nearest(word, names))
}

// DidYouMean returns a text to follow a name that does not exist, with the one that is
// meant: " (did you mean west?)". It is empty for an empty name.
func DidYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", name)
}

// longestObject is how long the name of an object may be, in bytes.
const longestObject = 253

// HintAmong is Hint for an object in a namespace. An object of the same name in
// another namespace goes before one of a similar name.
func HintAmong(wanted types.NamespacedName, known []types.NamespacedName) string {
	var near []string
	elsewhere := ""
	for _, other := range known {
		switch {
		case other.Namespace == wanted.Namespace:
			near = append(near, other.Name)
		case other.Name == wanted.Name && (elsewhere == "" || other.Namespace < elsewhere):
			elsewhere = other.Namespace
		}
	}
	if elsewhere != "" {
		return fmt.Sprintf(" (did you mean the one in %s?)", elsewhere)
	}
	return Hint(wanted.Name, near)
}
