package remark

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// signers is the Secret by which the signatures of a source are verified: the field that names it, what is in it, and the arguments
// of the command that makes one.
type signers struct{ field, secret, holds, files string }

// signersOf returns the Secret of a source; false where its spec names none.
func signersOf(of origins.Object) (signers, bool) {
	const keys = "the public keys whose signatures count"
	switch r := of.(type) {
	case *sourcev1.GitRepository:
		if v := r.Spec.Verification; v != nil {
			return signers{"spec.verify.secretRef", v.SecretRef.Name, keys, "--from-file=NAME.asc, or NAME.sshpub for SSH"}, true
		}
	case *sourcev1.OCIRepository:
		switch v := r.Spec.Verify; {
		case v == nil:
		case v.SecretRef != nil && v.Provider == provenance.Notation:
			return signers{"spec.verify.secretRef", v.SecretRef.Name, "the trust policy, and the certificates of who may sign", "--from-file=trustpolicy.json --from-file=NAME.crt"}, true
		case v.SecretRef != nil:
			return signers{"spec.verify.secretRef", v.SecretRef.Name, keys, "--from-file=NAME.pub"}, true
		case v.TrustedRootSecretRef != nil:
			return signers{"spec.verify.trustedRootSecretRef", v.TrustedRootSecretRef.Name, "the trusted root", "--from-file=trusted_root.json"}, true
		}
	}
	return signers{}, false
}

// missingSigners returns how to make the Secret by which signatures are verified, if a message says that it is not there; it is
// looked for again by itself.
func missingSigners(of origins.Object, message string) (next string, missing bool) {
	s, named := signersOf(of)
	if !named || !strings.HasPrefix(message, "the Secret "+of.GetNamespace()+"/"+s.secret+" of "+s.field+" is not there") {
		return "", false
	}
	return "make it of " + s.holds + ": flotilla create secret generic " + s.secret + inNamespace(of.GetNamespace()) + " " + s.files, true
}
