package provenance

import (
	"fmt"
	"regexp"
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/pattern"
)

// longestSubject is how much of who signed with a certificate is recorded, in runes. What is longer does not match what it
// should, and so does not count.
const longestSubject = 1000

// ArtifactSignature is who signed the artifact of a registry.
type ArtifactSignature struct {
	Signature
	// Issuer is who told the authority of the signer's certificate, the subject of which is Name, who that is; empty for a key.
	Issuer string
	// Certified says that Notation verified it, so that Issuer is the authority itself, and Key stands for the trust policy with its
	// certificates.
	Certified bool
}

// certified begins what is recorded as the key where Notation verified a signature.
const certified = "notation:"

var ofArtifact = fields{gitopsv1alpha1.ArtifactSigningKeyKey, gitopsv1alpha1.ArtifactSignerKey, gitopsv1alpha1.ArtifactSignedKey}

// RecordArtifact writes into an artifact's metadata who signed it; nil is for what was not verified.
func RecordArtifact(metadata map[string]string, s *ArtifactSignature) {
	delete(metadata, gitopsv1alpha1.ArtifactIssuerKey)
	if s == nil {
		ofArtifact.write(metadata, nil)
		return
	}
	ofArtifact.write(metadata, &s.Signature)
	if s.Certified {
		metadata[ofArtifact.key] = certified + s.Key
	}
	if s.Issuer != "" {
		metadata[ofArtifact.name] = excerpt.Runes(excerpt.Line(s.Name), longestSubject)
		metadata[gitopsv1alpha1.ArtifactIssuerKey] = excerpt.Runes(excerpt.Line(s.Issuer), longestSubject)
	}
}

// artifactBy returns who signed an artifact; empty where nothing was verified.
func artifactBy(metadata map[string]string) string {
	key, name, issuer := metadata[ofArtifact.key], metadata[ofArtifact.name], metadata[gitopsv1alpha1.ArtifactIssuerKey]
	switch {
	case key == "":
		return ""
	case issuer != "":
		return fmt.Sprintf("artifact signed by %s, as %s says", name, issuer)
	default:
		return fmt.Sprintf("artifact signed by the key %s (%s)", name, key)
	}
}

// Matcher is an identity whose signatures count.
type Matcher struct{ issuer, subject *regexp.Regexp }

// Matchers reads the identities whose signatures count; one that matches is enough. The error names the field.
func Matchers(asked []sourcev1.OIDCIdentityMatch) ([]Matcher, error) {
	var fields, texts []string
	for i, match := range asked {
		field := fmt.Sprintf("spec.verify.matchOIDCIdentity[%d].", i)
		fields, texts = append(fields, field+"issuer", field+"subject"), append(texts, match.Issuer, match.Subject)
	}
	compiled, err := pattern.CompileAll(fields, texts)
	if err != nil {
		return nil, err
	}
	out := make([]Matcher, 0, len(asked))
	for i := range asked {
		out = append(out, Matcher{issuer: compiled[2*i], subject: compiled[2*i+1]})
	}
	return out, nil
}

// Matches reports whether an identity is one of those that count. As in Flux, an expression without anchors matches a part.
func Matches(all []Matcher, issuer, subject string) bool {
	for _, m := range all {
		if issuer != "" && subject != "" && m.issuer.MatchString(issuer) && m.subject.MatchString(subject) {
			return true
		}
	}
	return false
}

// metByArtifact reports whether an artifact is signed as a source asks: by a key where it names some, or else by an identity.
func metByArtifact(asked *sourcev1.OCIRepositoryVerification, metadata map[string]string) bool {
	issuer, key := metadata[gitopsv1alpha1.ArtifactIssuerKey], metadata[ofArtifact.key]
	if _, is := strings.CutPrefix(key, certified); key == "" || is != (asked.Provider == Notation) {
		return false
	}
	if asked.Provider == Notation {
		return asked.SecretRef != nil && issuer != ""
	}
	if asked.Provider != Cosign && asked.Provider != "" {
		return false
	}
	if asked.SecretRef != nil {
		return issuer == ""
	}
	matchers, err := Matchers(asked.MatchOIDCIdentity)
	return err == nil && asked.TrustedRootSecretRef != nil && Matches(matchers, issuer, metadata[ofArtifact.name])
}

// Cosign and Notation are the providers of signatures that are verified.
const Cosign, Notation = "cosign", "notation"

// ArtifactKey returns the fingerprint of what vouches for the artifact of an OCIRepository, as its spec asks; empty for nothing.
func ArtifactKey(r *sourcev1.OCIRepository) string {
	if r.Spec.Verify == nil || r.Status.Artifact == nil || !metByArtifact(r.Spec.Verify, r.Status.Artifact.Metadata) {
		return ""
	}
	return strings.TrimPrefix(r.Status.Artifact.Metadata[ofArtifact.key], certified)
}

// UnverifiedArtifact says why the artifact of an OCIRepository must not be built; it is empty if it may.
func UnverifiedArtifact(r *sourcev1.OCIRepository) string {
	if r.Spec.Verify == nil || ArtifactKey(r) != "" {
		return ""
	}
	revision := ""
	if r.Status.Artifact != nil {
		revision = " of " + r.Status.Artifact.Revision
	}
	return fmt.Sprintf("the artifact%s is not verified as spec.verify of OCIRepository %s/%s asks", revision, r.Namespace, r.Name)
}

// RefusedArtifact returns the revision that an OCIRepository does not take, as it is not verified; zero for none.
func RefusedArtifact(r *sourcev1.OCIRepository) Refusal {
	if r.Spec.Verify == nil {
		return Refusal{}
	}
	return refusedBy(r.Status.Conditions)
}
