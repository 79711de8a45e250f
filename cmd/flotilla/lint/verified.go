package lint

import (
	"strings"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/policies/unserved"
)

// verified reports what verifies nothing, or less than somebody may think, of what a source asks of signatures of cosign.
func verified(l *linter, o *object, verify *sourcev1.OCIRepositoryVerification) {
	if verify == nil || verify.Provider != provenance.Cosign && verify.Provider != "" {
		return
	}
	refuse(l, o, "spec.verify", unserved.Verify(verify))
	if _, err := provenance.Matchers(verify.MatchOIDCIdentity); err != nil {
		field, _, _ := strings.Cut(err.Error(), " ")
		refuse(l, o, field, err.Error())
	}
}
