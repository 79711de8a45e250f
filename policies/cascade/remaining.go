package cascade

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Remaining is what a namespace that is being deleted says of what is still in it, and of
// what keeps that there; empty where it says nothing.
func Remaining(namespace *corev1.Namespace) string {
	var parts []string
	for _, c := range namespace.Status.Conditions {
		text := preamble.ReplaceAllString(c.Message, "")
		if c.Status == corev1.ConditionTrue && text != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}

// preamble is how a namespace begins to say why not all in it is deleted: the part that explains it
// comes after it.
var preamble = regexp.MustCompile(`^Failed to delete all resource types, \d+ remaining: `)

const (
	// kept begins what BlockedBy and BlockedByKind say, and byFinalizers what the former says.
	kept         = "kept by "
	byFinalizers = kept + "its finalizers: "
)

// SaysWhat reports whether a message has a text of BlockedBy or BlockedByKind: it is known what keeps an object, which does not
// just take its time.
func SaysWhat(message string) bool { return strings.Contains(message, kept) }

// Blocking returns the finalizers in a text of BlockedBy; nil for another text.
func Blocking(text string) []string {
	names, is := strings.CutPrefix(text, byFinalizers)
	if !is {
		return nil
	}
	return strings.Split(names, ", ")
}

// BlockedBy says that these finalizers keep an object from being deleted; empty where there are none.
func BlockedBy(finalizers []string) string {
	if len(finalizers) == 0 {
		return ""
	}
	return byFinalizers + strings.Join(finalizers, ", ")
}

// BlockedByKind says what keeps a definition that is being deleted: what is left of its kind,
// which its own finalizer waits for, comes before the finalizers of others. It is Held where
// nothing is left.
func BlockedByKind(left, finalizers []string) string {
	if len(left) == 0 {
		return BlockedBy(finalizers)
	}
	text := kept + "what is left of its kind: " + Describe(left)
	others := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == apiextensionsv1.CustomResourceCleanupFinalizer })
	if blocked := BlockedBy(others); blocked != "" {
		text += "; " + blocked
	}
	return text
}
