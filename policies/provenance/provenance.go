package provenance

import (
	"fmt"
	"maps"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// longestName is how much of what a key says of its owner is recorded, in runes.
const longestName = 200

// Signature is who signed a commit or a tag.
type Signature struct {
	// Key is the fingerprint of the key; never empty.
	Key string
	// Name is what the key says of its owner; it may be empty.
	Name string
	// Signed is when it was signed, as the signature says; zero where it does not.
	Signed time.Time
}

// fields are the keys of the metadata that record one Signature.
type fields struct{ key, name, signed string }

var (
	ofCommit = fields{gitopsv1alpha1.CommitSigningKeyKey, gitopsv1alpha1.CommitSignerKey, gitopsv1alpha1.CommitSignedKey}
	ofTag    = fields{gitopsv1alpha1.TagSigningKeyKey, gitopsv1alpha1.TagSignerKey, gitopsv1alpha1.TagSignedKey}
)

// Record writes into an artifact's metadata who signed its commit and its tag; nil is for what was not verified.
func Record(metadata map[string]string, commit, tag *Signature) {
	ofCommit.write(metadata, commit)
	ofTag.write(metadata, tag)
}

func (f fields) write(metadata map[string]string, s *Signature) {
	for _, key := range []string{f.key, f.name, f.signed} {
		delete(metadata, key)
	}
	if s == nil {
		return
	}
	metadata[f.key] = s.Key
	if name := excerpt.Runes(excerpt.Line(s.Name), longestName); name != "" {
		metadata[f.name] = name
	}
	if !s.Signed.IsZero() {
		metadata[f.signed] = s.Signed.UTC().Format(time.RFC3339)
	}
}

// Commit returns what the metadata of an artifact says about its commit: who wrote it, what it is about, when it was made,
// and who signed it.
func Commit(metadata map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{
		gitopsv1alpha1.CommitAuthorKey, gitopsv1alpha1.CommitSubjectKey, gitopsv1alpha1.CommitDateKey,
		ofCommit.key, ofCommit.name, ofCommit.signed, ofTag.key, ofTag.name, ofTag.signed,
		ofArtifact.key, ofArtifact.name, ofArtifact.signed, gitopsv1alpha1.ArtifactIssuerKey,
	} {
		if value := metadata[key]; value != "" {
			out[key] = value
		}
	}
	return out
}

// Withdrawn returns metadata without what Record and RecordArtifact wrote.
func Withdrawn(metadata map[string]string) map[string]string {
	out := maps.Clone(metadata)
	if out != nil {
		Record(out, nil, nil)
		RecordArtifact(out, nil)
	}
	return out
}

// Keys returns the fingerprints of the keys that vouch for a source's artifact, one for each signature that its spec asks
// for; empty where it asks for none, and false where one that it asks for was not verified.
func Keys(r *sourcev1.GitRepository) (fingerprints []string, all bool) {
	verify := r.Spec.Verification
	if verify == nil {
		return nil, true
	}
	if mode := r.Status.SourceVerificationMode; r.Status.Artifact == nil || mode == nil || *mode != verify.GetMode() {
		return nil, false
	}
	for _, of := range []struct {
		asked bool
		fields
	}{{verify.VerifyHEAD(), ofCommit}, {verify.VerifyTag(), ofTag}} {
		key := r.Status.Artifact.Metadata[of.key]
		if of.asked && key == "" {
			return nil, false
		}
		if of.asked {
			fingerprints = append(fingerprints, key)
		}
	}
	return fingerprints, true
}

// Demand is which signatures a source asks for; the zero value asks for none.
type Demand struct {
	Git *sourcev1.GitRepositoryVerification
	OCI *sourcev1.OCIRepositoryVerification
}

// Met reports whether what is recorded of a commit, or of an artifact, has each signature that is asked for.
func (d Demand) Met(metadata map[string]string) bool {
	git := d.Git == nil || (!d.Git.VerifyHEAD() || metadata[ofCommit.key] != "") && (!d.Git.VerifyTag() || metadata[ofTag.key] != "")
	return git && (d.OCI == nil || metByArtifact(d.OCI, metadata))
}

// Unverified says why a source's artifact must not be built; it is empty if it may.
func Unverified(r *sourcev1.GitRepository) string {
	revision := ""
	if r.Status.Artifact != nil {
		revision = " of " + r.Status.Artifact.Revision
	}
	if _, all := Keys(r); all {
		c := apimeta.FindStatusCondition(r.Status.Conditions, sourcev1.IncludeUnavailableCondition)
		if c != nil && c.Status == metav1.ConditionTrue && c.Reason == sourcev1.VerificationError {
			return fmt.Sprintf("the artifact%s of GitRepository %s/%s includes what is not verified: %s", revision, r.Namespace, r.Name, c.Message)
		}
		return ""
	}
	return fmt.Sprintf("the artifact%s is not verified as spec.verify of GitRepository %s/%s asks (%s)", revision, r.Namespace, r.Name, r.Spec.Verification.GetMode())
}

// Text returns who signed, as in "commit signed by Ann <ann@example.com> (KEY)"; empty where nothing was verified.
func Text(metadata map[string]string) string {
	var parts []string
	if by := artifactBy(metadata); by != "" {
		parts = append(parts, by)
	}
	for _, of := range []struct {
		what string
		fields
	}{{"tag", ofTag}, {"commit", ofCommit}} {
		switch key, name := metadata[of.key], metadata[of.name]; {
		case key == "":
		case name == "":
			parts = append(parts, of.what+" signed by the key "+key)
		default:
			parts = append(parts, fmt.Sprintf("%s signed by %s (%s)", of.what, name, key))
		}
	}
	return strings.Join(parts, ", ")
}

// Refusal is a revision that is not taken, as it is not verified.
type Refusal struct {
	// Revision is the revision, in full; empty for none.
	Revision string
	// Kind is what has to be put right.
	Kind Kind
	// Why says why, in one line.
	Why string
}

// Kind is what of a revision is not as a source asks.
type Kind int

const (
	// UnsignedCommit is a commit, or an artifact of a registry, without a signature that counts.
	UnsignedCommit Kind = iota
	// UnsignedTag is a tag without one, or one that nobody can sign.
	UnsignedTag
	// MissingTag is a revision that no tag leads to.
	MissingTag
)

// TaglessRef returns what is wrong with a GitRepository that asks for a signed tag, and whose reference never leads to one, in a
// sentence that begins with the field; empty for nothing. A full name of a ref that others made may be that of a tag.
func TaglessRef(spec sourcev1.GitRepositorySpec) string {
	ref := spec.Reference
	switch verify := spec.Verification; {
	case verify == nil || !verify.VerifyTag():
		return ""
	case ref == nil, ref.Commit != "", ref.Name != "" && !strings.HasPrefix(ref.Name, "refs/tags/"), ref.Name == "" && ref.SemVer == "" && ref.Tag == "":
		return NoTag(verify)
	default:
		return ""
	}
}

// NoTag says that a mode of spec.verify needs a tag, where there is none.
func NoTag(verify *sourcev1.GitRepositoryVerification) string {
	return fmt.Sprintf("spec.verify.mode %s needs a signed tag, and spec.ref leads to none: name one in spec.ref.tag or spec.ref.semver, or use the mode HEAD", verify.GetMode())
}

// parting is what stands between the revision, in which there is no space, and the rest of a message, by Kind.
var separator = []string{UnsignedCommit: " is not verified: ", UnsignedTag: " is not verified by its tag: ", MissingTag: " is not verified, without a tag: "}

// Message returns the text of the conditions about a Refusal; Refused reads it.
func (r Refusal) Message() string { return r.Revision + separator[r.Kind] + r.Why }

// Refused returns the revision that a source does not take, as it is not verified; zero for none.
func Refused(r *sourcev1.GitRepository) Refusal {
	if r.Spec.Verification == nil {
		return Refusal{}
	}
	return refusedBy(r.Status.Conditions)
}

func refusedBy(conditions []metav1.Condition) Refusal {
	c := apimeta.FindStatusCondition(conditions, sourcev1.SourceVerifiedCondition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return Refusal{}
	}
	for kind, between := range separator {
		if revision, why, found := strings.Cut(c.Message, between); found && !strings.ContainsAny(revision, " \n") {
			return Refusal{Revision: revision, Kind: Kind(kind), Why: why}
		}
	}
	return Refusal{}
}
