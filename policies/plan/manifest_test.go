package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestPrepare: a manifest that somebody else put into a Work is sent pruned, with the id
// of the Work, and with the record of what is ours; preparing twice is preparing once.
func TestPrepare(t *testing.T) {
	const records = `resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels`
	cases := map[string]struct{ manifest, want string }{
		"without labels": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: u}, status: {}, data: {a: b}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {work.karmada.io/permanent-id: w}, annotations: {resourcetemplate.karmada.io/managed-annotations: "` + records + `", resourcetemplate.karmada.io/managed-labels: work.karmada.io/permanent-id}}, data: {a: b}}`,
		},
		"with labels, and another id": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: a, work.karmada.io/permanent-id: x}, annotations: {note: text}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: a, work.karmada.io/permanent-id: w}, annotations: {note: text, resourcetemplate.karmada.io/managed-annotations: "note,` + records + `", resourcetemplate.karmada.io/managed-labels: "app,work.karmada.io/permanent-id"}}}`,
		},
		"a service account, with its pull secrets, sorted and each once": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa}, imagePullSecrets: [{name: b}, {name: a}, {name: b}, {}, 7, {name: 7}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, labels: {work.karmada.io/permanent-id: w}, annotations: {work.flotilla.io/image-pull-secrets: "a,b", resourcetemplate.karmada.io/managed-annotations: "` + records + `,work.flotilla.io/image-pull-secrets", resourcetemplate.karmada.io/managed-labels: work.karmada.io/permanent-id}}, imagePullSecrets: [{name: b}, {name: a}, {name: b}, {}, 7, {name: 7}]}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifest := object(t, tc.manifest)
			for range 2 {
				plan.Prepare(manifest, "w")
				if diff := cmp.Diff(object(t, tc.want).Object, manifest.Object); diff != "" {
					t.Fatalf("prepared (-want +got):\n%s", diff)
				}
			}
		})
	}
}
