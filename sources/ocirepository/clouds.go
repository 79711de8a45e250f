package ocirepository

import (
	"context"
	"errors"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// ofCloud reports whether a Secret is the one that has credentials of the source's provider.
func ofCloud(spec sourcev1.OCIRepositorySpec, name string, data map[string][]byte) bool {
	return spec.SecretRef != nil && spec.SecretRef.Name == name && !oci.HasLogins(data) && cloudlogin.In(spec.Provider, data)
}

// clouds are the providers of sources.
type clouds struct {
	// built says that logins are asked for; see package clouds.
	built  bool
	logins *cloudlogin.Logins
}

// login returns the login for a registry that the source's provider gives out for the credentials of the Secret.
func (c clouds) login(ctx context.Context, s *state, host string, access oci.Access) (oci.Login, error) {
	switch spec := s.object.Spec; {
	case !c.built: // another Secret helps
		return oci.Login{}, loop.Waiting(fetching.ReasonUnsupported, s.interval, fmt.Errorf("the Secret %s/%s of spec.secretRef has credentials of spec.provider %s, which take a flotillad that was built with -tags clouds: build it with that, or put a login for the registry into the Secret", s.key.Namespace, spec.SecretRef.Name, spec.Provider))
	case spec.Insecure:
		return oci.Login{}, loop.Stalled(fetching.ReasonUnsupported, fmt.Errorf("spec.insecure would have the login of spec.provider %s sent without TLS: remove it", spec.Provider))
	}
	s.cloud.Host, s.cloud.Way = host, egress.Way{TLS: access.TLS, Proxy: access.Proxy}
	login, err := c.logins.Registry(ctx, *s.cloud)
	if err != nil {
		return oci.Login{}, s.classify(fmt.Errorf("Secret %s/%s of spec.secretRef: %w", s.key.Namespace, s.object.Spec.SecretRef.Name, err))
	}
	return oci.Login{Username: login.Username, Password: login.Password, IdentityToken: login.Refresh}, nil
}

// doubt drops a login of a cloud that the registry has refused.
func (c clouds) doubt(s *state, err error) {
	if s.cloud != nil && errors.Is(err, oci.ErrUnauthorized) {
		c.logins.Forget(*s.cloud)
	}
}
