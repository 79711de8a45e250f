package remark_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// TestWhatIsNotVerified: what to do follows from what is wrong, and not from what signers and tags are called.
func TestWhatIsNotVerified(t *testing.T) {
	const again = ", then: flotilla reconcile source git app -n shop"
	signed := func(what string) string {
		return "have the " + what + " signed with one of the keys of the Secret signers, or add the signer's public key there" + again
	}
	refusal := func(kind provenance.Kind, why string) string {
		return provenance.Refusal{Revision: "main@sha1:1", Kind: kind, Why: why}.Message()
	}
	for name, tc := range map[string]struct{ says, want string }{
		"the commit":                        {refusal(provenance.UnsignedCommit, "the commit is not signed"), signed("commit")},
		"the commit, by somebody so called": {refusal(provenance.UnsignedCommit, "the commit is signed by the tag of spec.verify.mode, which is not among those of the Secret"), signed("commit")},
		"the tag":                           {refusal(provenance.UnsignedTag, "the tag is not signed"), signed("tag")},
		"a tag of a name that misleads":     {refusal(provenance.UnsignedTag, "spec.verify.mode is a lightweight tag, which nobody can sign"), signed("tag")},
		"no tag":                            {refusal(provenance.MissingTag, "spec.verify.mode Tag needs a signed tag"), "correct spec.ref or spec.verify.mode: flotilla edit gitrepository app -n shop" + again},
		"the Secret":                        {"Secret shop/signers: invalid public keys", "put the public keys whose signatures count into the Secret signers -n shop" + again},
		"the Secret, which is not there":    {"the Secret shop/signers of spec.verify.secretRef is not there: create it", "make it of the public keys whose signatures count: flotilla create secret generic signers -n shop --from-file=NAME.asc, or NAME.sshpub for SSH"},
		"a Secret that others name":         {"the Secret shop/x;y of spec.verify.secretRef is not there: create it", "put the public keys whose signatures count into the Secret signers -n shop" + again},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
			r.Spec.Verification = &sourcev1.GitRepositoryVerification{SecretRef: meta.LocalObjectReference{Name: "signers"}}
			r.Status.Conditions = []metav1.Condition{{Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse, Message: tc.says}}
			if got := remark.SourceNext(r, &metav1.Condition{Reason: sourcev1.VerificationError, Message: tc.says}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestWhatIsHeldBack: it is taken by an annotation less, of the kind that it is.
func TestWhatIsHeldBack(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "shop", Name: "app"}
	for want, of := range map[string]origins.Object{
		"push a commit that follows, or take this one: flotilla kubectl annotate gitrepository app -n shop gitops.flotilla.io/rollback-protection-":                                                                          &sourcev1.GitRepository{ObjectMeta: named},
		"push a higher version that follows, ask for the versions of one branch in spec.ref.semver, as 1.2.x, or take this one: flotilla kubectl annotate gitrepository app -n shop gitops.flotilla.io/rollback-protection-": &sourcev1.GitRepository{ObjectMeta: named, Spec: sourcev1.GitRepositorySpec{Reference: &sourcev1.GitRepositoryRef{SemVer: "1.x"}}},
		"push an artifact that is newer, or take this one: flotilla kubectl annotate ocirepository app -n shop gitops.flotilla.io/rollback-protection-":                                                                      &sourcev1.OCIRepository{ObjectMeta: named},
	} {
		if got := remark.SourceNext(of, &metav1.Condition{Reason: "HistoryRewritten"}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestWhatArtifactIsNotVerified: what to do about an artifact of a registry follows from how it is to be signed.
func TestWhatArtifactIsNotVerified(t *testing.T) {
	const again = ", then: flotilla reconcile source oci app -n shop"
	ref := &meta.LocalObjectReference{Name: "signers"}
	refusal := provenance.Refusal{Revision: "v1@sha256:1", Why: "it has no signature of cosign"}.Message()
	keys, notation := sourcev1.OCIRepositoryVerification{SecretRef: ref}, sourcev1.OCIRepositoryVerification{Provider: "notation", SecretRef: ref}
	missing := func(field string) string {
		return "the Secret shop/signers of spec.verify." + field + " is not there: create it"
	}
	identities := func(subject string) sourcev1.OCIRepositoryVerification {
		return sourcev1.OCIRepositoryVerification{TrustedRootSecretRef: ref, MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: "a", Subject: subject}}}
	}
	for name, tc := range map[string]struct {
		verify     sourcev1.OCIRepositoryVerification
		says, want string
	}{
		"no key has signed it":       {keys, refusal, "have the artifact signed with one of the keys of the Secret signers, or add the signer's public key there" + again},
		"the Secret with the keys":   {keys, "Secret shop/signers: invalid public keys", "put the public keys whose signatures count into the Secret signers -n shop" + again},
		"no Secret with the keys":    {keys, missing("secretRef"), "make it of the public keys whose signatures count: flotilla create secret generic signers -n shop --from-file=NAME.pub"},
		"the Secret with the policy": {notation, "Secret shop/signers: invalid trust policy", "put trustpolicy.json and the certificates of who may sign into the Secret signers -n shop" + again},
		"no Secret with the policy":  {notation, missing("secretRef"), "make it of the trust policy, and the certificates of who may sign: flotilla create secret generic signers -n shop --from-file=trustpolicy.json --from-file=NAME.crt"},
		"no Secret with the root":    {identities("b"), missing("trustedRootSecretRef"), "make it of the trusted root: flotilla create secret generic signers -n shop --from-file=trusted_root.json"},
		"nobody who may signed it":   {identities("b"), refusal, "have the artifact signed by one of spec.verify.matchOIDCIdentity, or add who signs it there: flotilla edit ocirepository app -n shop" + again},
		"the Secret with the root":   {identities("b"), "Secret shop/signers: invalid trusted root", "put the trusted root into trusted_root.json of the Secret signers -n shop" + again},
		"no root":                    {sourcev1.OCIRepositoryVerification{MatchOIDCIdentity: identities("b").MatchOIDCIdentity}, "spec.verify without keys in secretRef needs a trusted root", "correct its spec: flotilla edit ocirepository app -n shop" + again},
		"an expression that is none": {identities("("), "spec.verify.matchOIDCIdentity[0].subject is no regular expression", "correct its spec: flotilla edit ocirepository app -n shop" + again},
	} {
		t.Run(name, func(t *testing.T) {
			r := &sourcev1.OCIRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Spec: sourcev1.OCIRepositorySpec{Verify: &tc.verify}}
			r.Status.Conditions = []metav1.Condition{{Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse, Message: tc.says}}
			if got := remark.SourceNext(r, &metav1.Condition{Reason: sourcev1.VerificationError, Message: tc.says}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
