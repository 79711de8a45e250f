package ocirepository

import (
	"errors"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/unserved"
)

// refuseCosign is refuseVerify of signatures of cosign.
func refuseCosign(verify *sourcev1.OCIRepositoryVerification) error {
	if why := unserved.Verify(verify); why != "" {
		return loop.Stalled(sourcev1.VerificationError, errors.New(why))
	}
	return nil
}
