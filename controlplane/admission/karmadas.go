package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// generatorExpiration is how long the certificate is valid with which karmadactl asks for
// rights: the shortest time that the API accepts.
const generatorExpiration = 10 * time.Minute

var requests = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}

// mayAskForRights returns an error unless a user with a token requests the certificate with
// which karmadactl asks for rights. A token of one cluster is good for that cluster only.
func mayAskForRights(w agentWrite, request, cluster string) error {
	if _, ok := identity.TokenOf(w.GetUserInfo().GetName(), w.GetUserInfo().GetGroups()); !ok {
		return errors.New("the certificate that rights are asked for with is given by a token alone, and is not renewed")
	}
	if !identity.IsGenerators(request, cluster) {
		return fmt.Errorf("metadata.name: %q is not the name of a request of karmadactl's about the cluster %s", request, cluster)
	}
	return nil
}

// shorten limits the validity of certificates that a token or an agent asks for to that of
// Flotilla's agents. Karmada's agents would ask for a year.
func shorten(ctx context.Context, w agentWrite) error {
	if speaks, _ := speaksFor(w.GetUserInfo()); !speaks || w.GetSubresource() != "" || w.GetOperation() != admission.Create {
		return nil
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := w.read(w.GetObject(), csr); err != nil {
		return apierrors.NewInternalError(err)
	}
	longest := registration.DefaultExpiration
	switch _, err := identity.Check(&csr.Spec); {
	case errors.Is(err, identity.ErrGenerator):
		longest = generatorExpiration
	case err != nil:
		return nil //nolint:nilerr // it is refused
	}
	asked := csr.Spec.ExpirationSeconds
	if asked != nil && *asked <= int32(longest.Seconds()) {
		return nil
	}
	csr.Spec.ExpirationSeconds = ptr.To(int32(longest.Seconds()))
	if longest == registration.DefaultExpiration {
		warning.AddWarning(ctx, "", fmt.Sprintf("the certificate is good for at most %d days: karmadactl register --enable-cert-rotation has the agent renew it", int(longest.Hours())/24))
	}
	if err := w.GetObjectConvertor().Convert(csr, w.GetObject(), nil); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("write what is asked for: %w", err))
	}
	return nil
}
