package lastgood_test

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// builds are what every artifact is built to.
type builds []*unstructured.Unstructured

func (b builds) Build(context.Context, builder.Input) ([]*unstructured.Unstructured, error) {
	return b, nil
}

// If the artifact is built to other objects than those that were applied, as variables or the spec have changed,
// nothing is written. The applier here is nil and would panic.
func TestWhatIsBuiltOtherwiseIsNotWritten(t *testing.T) {
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	digest, _ := builder.Digest(nil)
	record := lastgood.Record{Revision: "main@sha1:1", Artifact: "sha256:1", Objects: digest}
	got, err := lastgood.New(builds{config}, nil).Restore(t.Context(), lastgood.Request{Build: builder.Input{Kustomization: &kustomizev1.Kustomization{}}, Record: record})
	if diff := cmp.Diff(lastgood.Restored{}, got); err != nil || diff != "" {
		t.Errorf("error %v, restored (-want +got):\n%s", err, diff)
	}
}

func statusOf(outcomes ...string) kustomizev1.KustomizationStatus {
	var status kustomizev1.KustomizationStatus
	for _, digest := range outcomes {
		status.History = append(status.History, meta.Snapshot{Digest: digest})
	}
	return status
}

func TestRecords(t *testing.T) {
	whole := lastgood.Record{Revision: "main@sha1:1", Artifact: "sha256:a", Objects: "sha256:b", Bytes: 7}
	signed := whole
	signed.Commit = map[string]string{"gitops.flotilla.io/commit-author": "Ann \"A\" <ann@example.com>"}
	moved := whole
	moved.Sources = []inventory.Source{inventory.GitRepository(client.ObjectKey{Namespace: "shop", Name: "split"}), {Kind: "OCIRepository", ObjectKey: client.ObjectKey{Namespace: "shop", Name: "app"}}}
	cases := map[string]struct {
		status  kustomizev1.KustomizationStatus
		written lastgood.Record
		want    lastgood.Record
	}{
		"with its sources":                  {statusOf("2", "1"), moved, moved},
		"the sources of a part":             {statusOf("1"), lastgood.Record{Bytes: 7, Sources: moved.Sources}, lastgood.Record{Bytes: 7, Sources: moved.Sources}},
		"all of it":                         {statusOf("2", "1"), whole, whole},
		"with its commit":                   {statusOf("2", "1"), signed, signed},
		"nothing":                           {statusOf("1"), lastgood.Record{}, lastgood.Record{}},
		"what it was built to is not known": {statusOf("1"), lastgood.Record{Revision: "main@sha1:1", Artifact: "sha256:a"}, lastgood.Record{}},
		"a part was applied":                {statusOf("1"), lastgood.Record{Bytes: 7}, lastgood.Record{Bytes: 7}},
		"no outcome to record it with":      {statusOf(), whole, lastgood.Record{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lastgood.Write(&tc.status, tc.written)
			if diff := cmp.Diff(tc.want, lastgood.In(tc.status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			lastgood.Write(&tc.status, lastgood.Record{})
			if diff := cmp.Diff(lastgood.Record{}, lastgood.In(tc.status)); diff != "" {
				t.Errorf("after it is cleared (-want +got):\n%s", diff)
			}
		})
	}
	strange := statusOf("1")
	strange.History[0].Metadata = map[string]string{"gitops.flotilla.io/applied": "sha256:a"}
	if diff := cmp.Diff(lastgood.Record{}, lastgood.In(strange)); diff != "" {
		t.Errorf("what does not read (-want +got):\n%s", diff)
	}
}

func TestInUse(t *testing.T) {
	kustomization := func(namespace, name, sourceNamespace, source, artifact string) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: source, Namespace: sourceNamespace}},
			Status:     statusOf("1"),
		}
		lastgood.Write(&ks.Status, lastgood.Record{Revision: "main@sha1:1", Artifact: artifact, Objects: "sha256:o"})
		return ks
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		kustomization("team", "web", "", "fleet", "sha256:2"), kustomization("team", "db", "", "fleet", "sha256:2"),
		kustomization("other", "web", "team", "fleet", "sha256:1"), kustomization("other", "db", "", "fleet", "sha256:3"),
		kustomization("team", "new", "", "fleet", ""), kustomization("team", "infra", "", "infra", "sha256:4"),
	).Build()
	own, foreign := artifact.Used{Digest: "sha256:2", Revision: "main@sha1:1"}, artifact.Used{Digest: "sha256:1", Revision: "main@sha1:1"}
	for name, tc := range map[string]struct {
		rules tenancy.Rules
		want  []artifact.Used
	}{
		"of its own namespace": {tenancy.Rules{}, []artifact.Used{own}},
		"of all, if they may":  {tenancy.Rules{AllowCrossNamespace: true}, []artifact.Used{foreign, own}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lastgood.InUse(hub, tc.rules, "GitRepository")(t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"})
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("error %v, in use (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestVerified: what was applied before its source asked for signatures is not brought back.
func TestVerified(t *testing.T) {
	record := lastgood.Record{Revision: "main@sha1:1", Artifact: "sha256:a", Objects: "sha256:b"}
	verify := provenance.Demand{Git: &sourcev1.GitRepositoryVerification{Mode: sourcev1.ModeGitHEAD}}
	signed := map[string]string{"revision": "main@sha1:1", "gitops.flotilla.io/commit-signing-key": "A1"}
	for name, tc := range map[string]struct {
		history []map[string]string
		commit  map[string]string
		verify  provenance.Demand
		want    bool
	}{
		"nothing is asked for":              {nil, nil, provenance.Demand{}, true},
		"it was signed":                     {[]map[string]string{{"revision": "main@sha1:2"}, signed}, nil, verify, true},
		"it was not":                        {[]map[string]string{{"revision": "main@sha1:1"}}, nil, verify, false},
		"another one was":                   {[]map[string]string{{"revision": "main@sha1:2", "gitops.flotilla.io/commit-signing-key": "A1"}}, nil, verify, false},
		"nothing is known of it any more":   {nil, nil, verify, false},
		"its health never came, and it was": {[]map[string]string{{"revision": "main@sha1:2"}}, signed, verify, true},
	} {
		record := record
		record.Commit = tc.commit
		var status kustomizev1.KustomizationStatus
		for _, metadata := range tc.history {
			status.History = append(status.History, meta.Snapshot{Metadata: metadata})
		}
		if got := lastgood.Verified(status, record, tc.verify); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
