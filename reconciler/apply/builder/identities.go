package builder

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/build"
)

// identities are names and namespaces that stand in plain text where everybody sees them, though the same text may have
// been encrypted elsewhere.
type identities struct{ names, namespaces map[string]bool }

// identitiesFor returns those that the Kustomization itself names.
func identitiesFor(in Input) identities {
	return identities{names: map[string]bool{}, namespaces: map[string]bool{in.Kustomization.Namespace: true, in.Kustomization.Spec.TargetNamespace: true}}
}

// read adds those that are not encrypted in an encrypted file.
func (i identities) read(content []byte) {
	docs, err := build.Read(content, build.Limits{})
	if err != nil {
		return // it is of another format, or the build reports it
	}
	for _, doc := range docs {
		metadata, _ := doc.Fields["metadata"].(map[string]any)
		for field, of := range map[string]map[string]bool{"name": i.names, "namespace": i.namespaces} {
			if text, _ := metadata[field].(string); text != "" && !strings.HasPrefix(text, "ENC[") {
				of[text] = true
			}
		}
	}
}

// textsFor returns the texts by which objects are called that have nothing in them but such names.
func (i identities) textsFor(objects []*unstructured.Unstructured) []string {
	var out []string
	for _, obj := range objects {
		id := inventory.IDOf(obj)
		if id.Namespace != "" && i.namespaces[id.Namespace] {
			out = append(out, id.GroupKind.Kind+"/"+id.Namespace+"/", "the namespace "+id.Namespace, `namespaces "`+id.Namespace+`"`, `namespace "`+id.Namespace+`"`)
		}
		if i.names[id.Name] && (id.Namespace == "" || i.namespaces[id.Namespace]) {
			out = append(out, inventory.Describe(id))
		}
	}
	return out
}
