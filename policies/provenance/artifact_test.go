package provenance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/provenance"
)

var (
	keyed   = &provenance.ArtifactSignature{Signature: provenance.Signature{Key: "SHA256:k", Name: "cosign.pub"}}
	keyless = &provenance.ArtifactSignature{
		Signature: provenance.Signature{Key: "SHA256:r", Name: "https://git.test/app/.ci@main", Signed: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Issuer:    "https://id.test",
	}
	notarised = &provenance.ArtifactSignature{
		Signature: provenance.Signature{Key: "SHA256:t", Name: "CN=ann,O=acme"}, Issuer: "CN=Root,O=acme", Certified: true,
	}
	byNotation = &sourcev1.OCIRepositoryVerification{Provider: "notation", SecretRef: &meta.LocalObjectReference{Name: "policy"}}
	byKey      = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "keys"}}
	byRoot     = asks("^https://id.test$", "^https://git.test/app/")
)

func asks(issuer, subject string) *sourcev1.OCIRepositoryVerification {
	return &sourcev1.OCIRepositoryVerification{
		Provider: "cosign", TrustedRootSecretRef: &meta.LocalObjectReference{Name: "root"},
		MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: "^nobody$", Subject: "^nobody$"}, {Issuer: issuer, Subject: subject}},
	}
}

// TestRecordArtifact is about what an artifact of a registry says of who signed it.
func TestRecordArtifact(t *testing.T) {
	for name, tc := range map[string]struct {
		by       *provenance.ArtifactSignature
		metadata map[string]string
		text     string
	}{
		"nobody": {nil, map[string]string{}, ""},
		"a key": {keyed, map[string]string{
			"gitops.flotilla.io/artifact-signing-key": "SHA256:k", "gitops.flotilla.io/artifact-signer": "cosign.pub",
		}, "artifact signed by the key cosign.pub (SHA256:k)"},
		"an identity": {keyless, map[string]string{
			"gitops.flotilla.io/artifact-signing-key": "SHA256:r", "gitops.flotilla.io/artifact-signer": "https://git.test/app/.ci@main",
			"gitops.flotilla.io/artifact-signer-issuer": "https://id.test", "gitops.flotilla.io/artifact-signed": "2026-01-02T03:04:05Z",
		}, "artifact signed by https://git.test/app/.ci@main, as https://id.test says"},
		"somebody by Notation": {notarised, map[string]string{
			"gitops.flotilla.io/artifact-signing-key": "notation:SHA256:t", "gitops.flotilla.io/artifact-signer": "CN=ann,O=acme", "gitops.flotilla.io/artifact-signer-issuer": "CN=Root,O=acme",
		}, "artifact signed by CN=ann,O=acme, as CN=Root,O=acme says"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := map[string]string{"other": "x"}
			provenance.RecordArtifact(metadata, keyless)
			provenance.RecordArtifact(metadata, tc.by)
			if diff := cmp.Diff(tc.metadata, provenance.Commit(metadata)); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			if got := provenance.Text(metadata); got != tc.text {
				t.Errorf("text: %s, want %s", got, tc.text)
			}
			if diff := cmp.Diff(map[string]string{"other": "x"}, provenance.Withdrawn(metadata)); diff != "" {
				t.Errorf("withdrawn (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnverifiedArtifact is about which artifacts of a registry may be built.
func TestUnverifiedArtifact(t *testing.T) {
	const why = "the artifact of v1@sha256:1 is not verified as spec.verify of OCIRepository shop/app asks"
	long := *keyless
	long.Name += strings.Repeat("x", 2000)
	for name, tc := range map[string]struct {
		asked *sourcev1.OCIRepositoryVerification
		by    *provenance.ArtifactSignature
		key   string
		why   string
	}{
		"nothing is asked for":                      {nil, keyed, "", ""},
		"a key, and one signed":                     {byKey, keyed, "SHA256:k", ""},
		"a key, and nobody signed":                  {byKey, nil, "", why},
		"a key, and an identity signed":             {byKey, keyless, "", why},
		"an identity, and it signed":                {byRoot, keyless, "SHA256:r", ""},
		"an identity, and another signed":           {asks("^https://id.test$", "^https://git.test/other/"), keyless, "", why},
		"an identity, and another issuer says so":   {asks("^https://other.test$", "app"), keyless, "", why},
		"an identity, and a key signed":             {byRoot, keyed, "", why},
		"an identity, which is not written in full": {asks("id.test", "x{200}$"), &long, "", why},
		"no identity, so that all would do":         {&sourcev1.OCIRepositoryVerification{Provider: "cosign", TrustedRootSecretRef: &meta.LocalObjectReference{Name: "root"}}, keyless, "", why},
		"an identity of no root":                    {&sourcev1.OCIRepositoryVerification{Provider: "cosign", MatchOIDCIdentity: byRoot.MatchOIDCIdentity}, keyless, "", why},
		"an expression that is none":                {asks("(", "app"), keyless, "", why},
		"Notation, and somebody signed with it":     {byNotation, notarised, "SHA256:t", ""},
		"Notation, and a key of cosign signed":      {byNotation, keyed, "", why},
		"Notation, and an identity of cosign":       {byNotation, keyless, "", why},
		"Notation without a Secret":                 {&sourcev1.OCIRepositoryVerification{Provider: "notation"}, notarised, "", why},
		"a key, and somebody signed with Notation":  {byKey, notarised, "", why},
		"an identity, and the same by Notation":     {asks("Root", "ann"), notarised, "", why},
		"another provider":                          {&sourcev1.OCIRepositoryVerification{Provider: "gpg", SecretRef: &meta.LocalObjectReference{Name: "keys"}}, keyed, "", why},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: sourcev1.OCIRepositorySpec{Verify: tc.asked}}
			r.Status.Artifact = &meta.Artifact{Revision: "v1@sha256:1", Metadata: map[string]string{}}
			provenance.RecordArtifact(r.Status.Artifact.Metadata, tc.by)
			if got := provenance.ArtifactKey(r); got != tc.key {
				t.Errorf("the key is %q, want %q", got, tc.key)
			}
			if got := provenance.UnverifiedArtifact(r); got != tc.why {
				t.Errorf("%q, want %q", got, tc.why)
			}
			if got := (provenance.Demand{OCI: tc.asked}).Met(r.Status.Artifact.Metadata); got != (tc.why == "") {
				t.Errorf("met: %t", got)
			}
		})
	}
	none := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: sourcev1.OCIRepositorySpec{Verify: byKey}}
	if got, want := provenance.UnverifiedArtifact(none), "the artifact is not verified as spec.verify of OCIRepository shop/app asks"; got != want {
		t.Errorf("without an artifact: %q, want %q", got, want)
	}
}

// TestRefusedArtifact: what a source does not take is known by the message of its condition.
func TestRefusedArtifact(t *testing.T) {
	refusal := provenance.Refusal{Revision: "v1@sha256:1", Why: "nobody has signed it"}
	r := &sourcev1.OCIRepository{Spec: sourcev1.OCIRepositorySpec{Verify: byKey}}
	r.Status.Conditions = []metav1.Condition{{Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse, Message: refusal.Message()}}
	if got := provenance.RefusedArtifact(r); got != refusal {
		t.Errorf("%+v, want %+v", got, refusal)
	}
	r.Spec.Verify = nil
	if got := provenance.RefusedArtifact(r); got != (provenance.Refusal{}) {
		t.Errorf("nothing is asked for: %+v", got)
	}
}

// TestMatchers is about the expressions of who may sign.
func TestMatchers(t *testing.T) {
	for name, tc := range map[string]struct {
		issuer, subject string
		want            string
	}{
		"the issuer":  {"(", "a", "spec.verify.matchOIDCIdentity[0].issuer is no regular expression: missing closing )"},
		"the subject": {"a", "[", "spec.verify.matchOIDCIdentity[0].subject is no regular expression: missing closing ]"},
	} {
		_, err := provenance.Matchers([]sourcev1.OIDCIdentityMatch{{Issuer: tc.issuer, Subject: tc.subject}})
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	all, err := provenance.Matchers([]sourcev1.OIDCIdentityMatch{{Issuer: ".*", Subject: ".*"}})
	if err != nil || provenance.Matches(all, "", "somebody") || provenance.Matches(all, "https://id.test", "") {
		t.Errorf("somebody of whom nothing is known counts: %v", err)
	}
}
