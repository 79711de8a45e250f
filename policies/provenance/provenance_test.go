package provenance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/policies/provenance"
)

var (
	ann = &provenance.Signature{Key: "A1", Name: "Ann\n<ann@example.com>", Signed: time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))}
	bob = &provenance.Signature{Key: "SHA256:b"}
)

// TestRecord is about what an artifact says of signatures.
func TestRecord(t *testing.T) {
	metadata := map[string]string{"gitops.flotilla.io/commit-author": "Ann", "other": "x"}
	provenance.Record(metadata, ann, bob)
	want := map[string]string{
		"gitops.flotilla.io/commit-author": "Ann", "other": "x",
		"gitops.flotilla.io/commit-signing-key": "A1", "gitops.flotilla.io/commit-signer": "Ann <ann@example.com>", "gitops.flotilla.io/commit-signed": "2026-01-02T02:04:05Z",
		"gitops.flotilla.io/tag-signing-key": "SHA256:b",
	}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Errorf("both (-want +got):\n%s", diff)
	}
	if got := provenance.Text(metadata); got != "tag signed by the key SHA256:b, commit signed by Ann <ann@example.com> (A1)" {
		t.Errorf("text: %s", got)
	}
	delete(want, "other")
	if diff := cmp.Diff(want, provenance.Commit(metadata)); diff != "" {
		t.Errorf("of the commit (-want +got):\n%s", diff)
	}
	withdrawn := provenance.Withdrawn(metadata)
	if diff := cmp.Diff(map[string]string{"gitops.flotilla.io/commit-author": "Ann", "other": "x"}, withdrawn); diff != "" {
		t.Errorf("withdrawn (-want +got):\n%s", diff)
	}
	if len(metadata) == len(withdrawn) {
		t.Error("Withdrawn changed its argument")
	}
	if got := provenance.Withdrawn(nil); got != nil {
		t.Errorf("withdrawn from nothing: %v", got)
	}
	provenance.Record(metadata, bob, nil)
	if got := provenance.Text(metadata); got != "commit signed by the key SHA256:b" {
		t.Errorf("the commit alone: %s", got)
	}
	provenance.Record(metadata, &provenance.Signature{Key: "C", Name: strings.Repeat("x", 300)}, nil)
	if got := metadata["gitops.flotilla.io/commit-signer"]; len([]rune(got)) > 200 {
		t.Errorf("a name of %d runes", len([]rune(got)))
	}
}

// TestUnverified is about which artifacts may be built.
func TestUnverified(t *testing.T) {
	const head, tag, both = sourcev1.ModeGitHEAD, sourcev1.ModeGitTag, sourcev1.ModeGitTagAndHEAD
	for name, tc := range map[string]struct {
		asked, was  sourcev1.GitVerificationMode // empty for none
		commit, tag *provenance.Signature
		keys        []string
		why         string
	}{
		"nothing is asked for":               {keys: nil},
		"the commit, and it is":              {asked: head, was: head, commit: ann, keys: []string{"A1"}},
		"the commit, and only the tag is":    {asked: head, was: head, tag: bob, why: "the artifact of main@sha1:1 is not verified as spec.verify of GitRepository shop/app asks (HEAD)"},
		"the tag, and it is":                 {asked: tag, was: tag, tag: bob, keys: []string{"SHA256:b"}},
		"both, and they are":                 {asked: both, was: both, commit: ann, tag: bob, keys: []string{"A1", "SHA256:b"}},
		"both, and only the commit is":       {asked: both, was: both, commit: ann, why: "the artifact of main@sha1:1 is not verified as spec.verify of GitRepository shop/app asks (TagAndHEAD)"},
		"it was for what was asked before":   {asked: both, was: head, commit: ann, tag: bob, why: "the artifact of main@sha1:1 is not verified as spec.verify of GitRepository shop/app asks (TagAndHEAD)"},
		"it was fetched before it was asked": {asked: head, why: "the artifact of main@sha1:1 is not verified as spec.verify of GitRepository shop/app asks (HEAD)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
			r.Status.Artifact = &meta.Artifact{Revision: "main@sha1:1", Metadata: map[string]string{}}
			if tc.asked != "" {
				r.Spec.Verification = &sourcev1.GitRepositoryVerification{Mode: tc.asked}
			}
			if tc.was != "" {
				r.Status.SourceVerificationMode = ptr.To(tc.was)
			}
			provenance.Record(r.Status.Artifact.Metadata, tc.commit, tc.tag)
			keys, all := provenance.Keys(r)
			if diff := cmp.Diff(tc.keys, keys); diff != "" || all != (tc.why == "") {
				t.Errorf("all: %t, keys (-want +got):\n%s", all, diff)
			}
			if got := provenance.Unverified(r); got != tc.why {
				t.Errorf("%s, want %s", got, tc.why)
			}
		})
	}
	r := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	r.Spec.Verification = &sourcev1.GitRepositoryVerification{}
	if got, want := provenance.Unverified(r), "the artifact is not verified as spec.verify of GitRepository shop/app asks (HEAD)"; got != want {
		t.Errorf("without an artifact: %s, want %s", got, want)
	}
}

// TestRefused: what a source does not take is known by the message of its condition.
func TestRefused(t *testing.T) {
	refusal := provenance.Refusal{Revision: "main@sha1:1", Why: "the commit is not signed"}
	tagged := provenance.Refusal{Revision: "v1@sha1:1", Kind: provenance.UnsignedTag, Why: "the tag is not verified: x"}
	tagless := provenance.Refusal{Revision: "main@sha1:1", Kind: provenance.MissingTag, Why: "name one"}
	const plain = "the Secret shop/signers is not there"
	for name, tc := range map[string]struct {
		asked   bool
		status  metav1.ConditionStatus
		message string
		want    provenance.Refusal
	}{
		"a revision":                 {true, metav1.ConditionFalse, refusal.Message(), refusal},
		"by its tag":                 {true, metav1.ConditionFalse, tagged.Message(), tagged},
		"by no tag":                  {true, metav1.ConditionFalse, tagless.Message(), tagless},
		"the Secret":                 {true, metav1.ConditionFalse, plain, provenance.Refusal{}},
		"the Secret, in other words": {true, metav1.ConditionFalse, "a key is not verified: x", provenance.Refusal{}},
		"nothing":                    {true, metav1.ConditionTrue, refusal.Message(), provenance.Refusal{}},
		"nothing is asked for":       {false, metav1.ConditionFalse, refusal.Message(), provenance.Refusal{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.GitRepository{}
			if tc.asked {
				r.Spec.Verification = &sourcev1.GitRepositoryVerification{}
			}
			r.Status.Conditions = []metav1.Condition{{Type: sourcev1.SourceVerifiedCondition, Status: tc.status, Message: tc.message}}
			if got := provenance.Refused(r); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
	if got := provenance.Refused(&sourcev1.GitRepository{}); got != (provenance.Refusal{}) {
		t.Errorf("without a condition: %+v", got)
	}
}

// TestMet is about what a history records of a commit.
func TestMet(t *testing.T) {
	commit, both := map[string]string{}, map[string]string{}
	provenance.Record(commit, ann, nil)
	provenance.Record(both, ann, bob)
	verify := func(mode sourcev1.GitVerificationMode) *sourcev1.GitRepositoryVerification {
		return &sourcev1.GitRepositoryVerification{Mode: mode}
	}
	for name, tc := range map[string]struct {
		verify   *sourcev1.GitRepositoryVerification
		metadata map[string]string
		want     bool
	}{
		"nothing is asked for":     {nil, nil, true},
		"the commit":               {verify(sourcev1.ModeGitHEAD), commit, true},
		"the commit, without":      {verify(sourcev1.ModeGitHEAD), nil, false},
		"the tag, without":         {verify(sourcev1.ModeGitTag), commit, false},
		"both":                     {verify(sourcev1.ModeGitTagAndHEAD), both, true},
		"both, with the one alone": {verify(sourcev1.ModeGitTagAndHEAD), commit, false},
	} {
		if got := (provenance.Demand{Git: tc.verify}).Met(tc.metadata); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
