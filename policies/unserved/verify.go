package unserved

import sourcev1 "github.com/fluxcd/source-controller/api/v1"

// Verify returns a sentence that begins with spec.verify where what an OCIRepository asks of signatures of cosign verifies nothing,
// or less than somebody may think; empty for none.
func Verify(verify *sourcev1.OCIRepositoryVerification) string {
	switch {
	case verify == nil:
		return ""
	case verify.SecretRef != nil && (verify.TrustedRootSecretRef != nil || len(verify.MatchOIDCIdentity) > 0):
		return "spec.verify has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only"
	case verify.SecretRef != nil:
		return ""
	case verify.TrustedRootSecretRef == nil:
		return "spec.verify without keys in secretRef needs a trusted root, and the one of the public Sigstore is not fetched: put its trusted_root.json, as cosign trusted-root create writes it, into a Secret, and name that in spec.verify.trustedRootSecretRef"
	case len(verify.MatchOIDCIdentity) == 0:
		return "spec.verify without keys in secretRef, and without matchOIDCIdentity, would take what anybody signs: name the issuer and the subject of who may"
	default:
		return ""
	}
}
