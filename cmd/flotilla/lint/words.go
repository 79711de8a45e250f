package lint

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/sources/origin"
)

// booleans are the words that are booleans in YAML 1.1, by the value. kubectl reads a file so, and kustomize, and with it a build of the
// control plane, takes them for texts.
var booleans = map[string][]string{
	"true":  {"y", "yes", "on"},
	"false": {"n", "no", "off"},
}

// insteadOf returns what to write in place of such a word where a boolean is to be; empty for another error.
func insteadOf(fields map[string]any, e *field.Error) string {
	word, isText := valueAt(fields, e.Field).(string)
	if e.Type != field.ErrorTypeTypeInvalid || !isText || !strings.Contains(e.Detail, "boolean") {
		return ""
	}
	for value, words := range booleans {
		if slices.Contains(words, strings.ToLower(word)) {
			return "; " + word + " is a text to a Kustomization, as in Flux, and a boolean to kubectl alone: write " + value
		}
	}
	return ""
}

// longForm returns which URL to write in place of the short form of SSH, which people clone by; empty for another error.
func longForm(fields map[string]any, e *field.Error) string {
	raw, isText := valueAt(fields, e.Field).(string)
	if long := origin.Long(raw); isText && e.Field == "spec.url" && long != "" {
		return ": write " + long
	}
	return ""
}

// valueAt returns the value of a field by its path, such as spec.rules[0].name; nil for none.
func valueAt(value any, path string) any {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch of := value.(type) {
		case map[string]any:
			value = of[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(of) {
				return nil
			}
			value = of[n]
		default:
			return nil
		}
	}
	return value
}
