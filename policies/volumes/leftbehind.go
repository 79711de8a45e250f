package volumes

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LeftBehind says what becomes of the data of a template that makes claims itself when it leaves clusters: "it takes no data along: the
// PersistentVolumeClaims data-db-* stay in west, …". It is for moves that are to come as for those that were made. Empty where it makes
// none, and for a template that is nil: it is not known.
func LeftBehind(template *unstructured.Unstructured, from []string) string {
	if template == nil || len(from) == 0 || !MakesClaims(template.GroupVersionKind().GroupKind()) {
		return ""
	}
	names := madeNames(template)
	if len(names) == 0 {
		return ""
	}
	for i := range names {
		names[i] += "-*"
	}
	becomes := "stay in "
	if Named(template) && slices.Contains(Drops(template), whens()[0]) {
		becomes = "go with the copy in "
	}
	return "it takes no data along: the PersistentVolumeClaims " + strings.Join(names, ", ") + " " + becomes +
		strings.Join(slices.Sorted(slices.Values(from)), ", ") + ", and it begins with empty ones elsewhere"
}
