package lineage_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// TestTheCommitOfAnArtifact: an artifact of a registry says itself which commit it was packed from, or nobody does.
func TestTheCommitOfAnArtifact(t *testing.T) {
	const digest, commit = "latest@sha256:abc", "main@sha1:9f2c8c1d"
	unknown := &lineage.Commit{Revision: digest, Artifact: true, Unknown: "the artifact does not say of which commit it was packed: flux push artifact --revision does"}
	stated := &lineage.Commit{Revision: commit, Unknown: "so says the artifact, of which author and subject are not known: git show 9f2c8c1d"}
	other := &lineage.Commit{Revision: digest, Artifact: true, Unknown: `it was packed from "release 7", so says the artifact, which is no commit`}
	signed := map[string]string{"org.opencontainers.image.revision": commit, "revision": digest, "gitops.flotilla.io/artifact-signing-key": "SHA256:k", "gitops.flotilla.io/artifact-signer": "ann.pub"}
	vouched := &lineage.Commit{Revision: commit, Unknown: stated.Unknown, Signed: "artifact signed by the key ann.pub (SHA256:k)"}
	for name, tc := range map[string]struct {
		revision, origin string
		metadata         map[string]string
		applied, fetched *lineage.Commit
	}{
		"it says nothing":  {digest, "", nil, unknown, unknown},
		"it says a commit": {digest, commit, map[string]string{"org.opencontainers.image.revision": commit}, stated, stated},
		"it is signed":     {digest, commit, signed, vouched, vouched},
		"the source has another one by now": {"latest@sha256:old", commit, map[string]string{"org.opencontainers.image.revision": commit},
			&lineage.Commit{Revision: "latest@sha256:old", Artifact: true, Unknown: unknown.Unknown}, stated},
		"it says something else": {digest, "release 7", map[string]string{"org.opencontainers.image.revision": "release 7"}, other, other},
	} {
		source := &sourcev1.OCIRepository{Status: sourcev1.OCIRepositoryStatus{Artifact: &meta.Artifact{Revision: digest, Metadata: tc.metadata}}}
		ks := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{LastAppliedRevision: digest, LastAppliedOriginRevision: tc.origin}}
		ks.Status.History = meta.History{{Metadata: tc.metadata}}
		if tc.revision != digest {
			ks.Status.LastAppliedRevision, ks.Status.LastAppliedOriginRevision = tc.revision, ""
		}
		if diff := cmp.Diff(tc.applied, lineage.CommitOf(ks, source)); diff != "" {
			t.Errorf("%s: what is applied (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.fetched, lineage.FetchedCommit(digest, source)); diff != "" {
			t.Errorf("%s: what is fetched (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoCommit: what others put together has a digest, which git does not know.
func TestNoCommit(t *testing.T) {
	const digest, commit = "sha256:0b7a6c5d4e3f2a1b", "main@sha1:9f2c8c1d"
	artifact := meta.Artifact{Revision: digest}
	stated := meta.Artifact{Revision: digest, Metadata: map[string]string{"org.opencontainers.image.revision": commit}}
	for name, tc := range map[string]struct {
		source origins.Object
		want   *lineage.Commit
	}{
		"the objects of a Bucket": {&sourcev1.Bucket{Status: sourcev1.BucketStatus{Artifact: &artifact}}, &lineage.Commit{Revision: digest, Artifact: true}},
		"an ExternalArtifact":     {&sourcev1.ExternalArtifact{Status: sourcev1.ExternalArtifactStatus{Artifact: &artifact}}, &lineage.Commit{Revision: digest, Artifact: true}},
		"an ExternalArtifact that says a commit": {&sourcev1.ExternalArtifact{Status: sourcev1.ExternalArtifactStatus{Artifact: &stated}},
			&lineage.Commit{Revision: commit, Unknown: "so says the artifact, of which author and subject are not known: git show 9f2c8c1d"}},
	} {
		ks := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{LastAppliedRevision: digest}}
		ks.Status.LastAppliedOriginRevision = tc.source.GetArtifact().Metadata["org.opencontainers.image.revision"]
		if diff := cmp.Diff(tc.want, lineage.CommitOf(ks, tc.source)); diff != "" {
			t.Errorf("%s: what is applied (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.want, lineage.FetchedCommit(digest, tc.source)); diff != "" {
			t.Errorf("%s: what is fetched (-want +got):\n%s", name, diff)
		}
	}
}

// TestTheCommitThatStands: who made the commit that is on the control plane is known also where no outcome of it is recorded, as its
// health was waited for when the next one came, and was refused.
func TestTheCommitThatStands(t *testing.T) {
	const first, second, third = "main@sha1:1111", "main@sha1:2222", "main@sha1:3333"
	by := func(name string) map[string]string {
		return map[string]string{"gitops.flotilla.io/commit-author": name, "gitops.flotilla.io/commit-subject": "of " + name}
	}
	outcome := func(revision string, metadata map[string]string) meta.Snapshot {
		metadata["revision"] = revision
		return meta.Snapshot{Digest: revision, Metadata: metadata}
	}
	source := &sourcev1.GitRepository{Status: sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Revision: third, Metadata: by("Cleo")}}}
	for name, tc := range map[string]struct {
		record lastgood.Record
		want   *lineage.Commit
	}{
		"it is recorded with what stands": {lastgood.Record{Revision: second, Commit: by("Ben")}, &lineage.Commit{Revision: second, Author: "Ben", Subject: "of Ben"}},
		"an older hub recorded nothing": {lastgood.Record{Revision: second},
			&lineage.Commit{Revision: second, Unknown: "author and subject are not recorded, and the source is at another commit: git show 2222"}},
		"an outcome is recorded": {lastgood.Record{Revision: first, Commit: by("Ann")}, &lineage.Commit{Revision: first, Author: "Ann", Subject: "of Ann"}},
	} {
		tc.record.Artifact, tc.record.Objects = "sha256:a", "sha256:o"
		ks := &kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository"}}}
		ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision = first, third
		ks.Status.History = meta.History{outcome(third, by("Cleo")), outcome(first, by("Ann"))}
		lastgood.Write(&ks.Status, tc.record)
		if diff := cmp.Diff(tc.want, lineage.CommitOf(ks, source)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
