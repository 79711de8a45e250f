package health_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestChildrenAreJudgedAtTheSameRevision: the conditions of a child Kustomization about one revision, good or bad, do
// not count for another one.
func TestChildrenAreJudgedAtTheSameRevision(t *testing.T) {
	const child = `{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "two", "namespace": "flux-system", "generation": 1},
  "spec": {"suspend": %t, "sourceRef": {"kind": %q, "name": %q}},
  "status": {"observedGeneration": 1, "lastAttemptedRevision": %q, "conditions": [{"type": "Ready", "status": %q, "reason": "x", "message": "as it was"}]}}`
	at := health.Revision{Source: inventory.GitRepository(client.ObjectKey{Namespace: "flux-system", Name: "fleet"}), Name: "main@sha1:2"}
	later := "has not tried revision main@sha1:2 yet"
	cases := map[string]struct {
		suspended    bool
		kind, source string
		tried, ready string
		at           health.Revision
		want         rollup.State
		says         string
	}{
		"it was ready at the one before":            {kind: "GitRepository", source: "fleet", tried: "main@sha1:1", ready: "True", at: at, want: rollup.Progressing, says: later},
		"it failed at the one before":               {kind: "GitRepository", source: "fleet", tried: "main@sha1:1", ready: "False", at: at, want: rollup.Progressing, says: later},
		"it has tried none":                         {kind: "GitRepository", source: "fleet", ready: "Unknown", at: at, want: rollup.Progressing, says: later},
		"it is ready at this one":                   {kind: "GitRepository", source: "fleet", tried: "main@sha1:2", ready: "True", at: at},
		"it failed at this one":                     {kind: "GitRepository", source: "fleet", tried: "main@sha1:2", ready: "False", at: at, want: rollup.Progressing, says: "as it was"},
		"it is suspended":                           {suspended: true, kind: "GitRepository", source: "fleet", tried: "main@sha1:1", ready: "True", at: at},
		"it follows another source":                 {kind: "GitRepository", source: "apps", tried: "main@sha1:1", ready: "True", at: at},
		"it follows another kind of that name":      {kind: "OCIRepository", source: "fleet", tried: "main@sha1:1", ready: "True", at: at},
		"it is asked for no revision in particular": {kind: "GitRepository", source: "fleet", tried: "main@sha1:1", ready: "True"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
			obj := object(t, fmt.Sprintf(child, tc.suspended, tc.kind, tc.source, tc.tried, tc.ready))
			e := entryOf(obj)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: obj}, As: hub, At: tc.at,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]health.Verdict{{ID: e.ID, State: tc.want, Reason: tc.says}}, got.Verdicts); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
