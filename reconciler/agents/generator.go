package agents

import (
	"context"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// approveGenerator decides a request for the certificate that karmadactl asks for rights
// with. It uses up no token, and gives no rights: its holder may only make requests.
func (a *approver) approveGenerator(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	by, known := requesterOf(csr.Spec.Username, csr.Spec.Groups, identity.Generator), facts{}
	if _, err := a.evidence.credit(ctx, csr, by, &known); err != nil {
		return err
	}
	switch err := judgeGenerator(by.token, known); {
	case errors.Is(err, errUndecided):
		return nil
	case err != nil:
		return a.deny(ctx, csr, err)
	}
	message := "asks for the rights of an agent, as karmadactl does, asked for by " + by.user
	if err := ignoreGone(a.decide(ctx, csr, certificatesv1.CertificateApproved, reasonApproved, message)); err != nil {
		return err
	}
	log.FromContext(ctx).Info("approved a certificate of "+identity.Agent(identity.Generator), "by", by.user)
	return nil
}
