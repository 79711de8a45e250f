package rollup

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// unserved returns why a cluster does not serve the kind of a CustomResourceDefinition, or the API of an APIService, that waits there,
// as in "not established: KindConflict: …"; empty for other kinds. Where names are taken that is why it is not established.
func unserved(kind schema.GroupKind, status map[string]any) string {
	var what string
	var types []string
	switch kind {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		what, types = "not established", []string{"NamesAccepted", "Established"}
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		what, types = "not available", []string{"Available"}
	default:
		return ""
	}
	conditions, _ := status["conditions"].([]any)
	for _, t := range types {
		for _, entry := range conditions {
			c, _ := entry.(map[string]any)
			if c["type"] != t || c["status"] == "True" {
				continue
			}
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			text := strings.Trim(reason+": "+excerpt.Line(excerpt.WithoutCredentials(message)), ": ")
			return what + ": " + excerpt.Runes(cmp.Or(text, t+" is not true"), longestCause)
		}
	}
	return what + " yet"
}
