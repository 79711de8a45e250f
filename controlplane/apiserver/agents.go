package apiserver

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapiserver "k8s.io/apiserver/pkg/server"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// errEarlier refuses a certificate that another cluster of the same name had, or
// this one before it was registered anew.
var errEarlier = errors.New("the certificate is of an earlier registration of this cluster")

// agents knows the certificates of agents better than the server's own check of
// certificates: those that have expired not long ago still get the next one, and
// those of an earlier registration get nothing.
type agents struct {
	next   authenticator.Request
	verify x509request.VerifyOptionFunc
	roles  rbaclisters.ClusterRoleLister
	grace  time.Duration
	clock  clock.PassiveClock
}

// authenticateAgents puts agents around what authenticates requests, and has those
// that last end with the registration that they were let in by.
func authenticateAgents(config *app.Config, grace time.Duration, clk clock.PassiveClock) error {
	plane := config.KubeAPIs.ControlPlane
	roles := plane.VersionedInformers.Rbac().V1().ClusterRoles()
	known := &agents{
		verify: plane.ClusterAuthenticationInfo.ClientCA.VerifyOptions,
		roles:  roles.Lister(),
		grace:  grace,
		clock:  clk,
	}
	for _, generic := range []*genericapiserver.Config{
		plane.Generic, &config.ApiExtensions.GenericConfig.Config, &config.Aggregator.GenericConfig.Config,
	} {
		each := *known
		each.next = generic.Authentication.Authenticator
		generic.Authentication.Authenticator = &each
	}
	return endWithRegistration(config.Aggregator.GenericConfig, roles.Informer(), known)
}

var _ authenticator.Request = (*agents)(nil)

// AuthenticateRequest returns who asks.
func (a *agents) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.next.AuthenticateRequest(req)
	certificate := presented(req)
	if certificate == nil {
		return response, ok, err
	}
	cluster, isAgent := identity.ClusterOfAgent(certificate.Subject.CommonName)
	switch {
	case !isAgent:
		return response, ok, err
	case ok && response.User.GetName() != certificate.Subject.CommonName:
		return response, ok, err // has other credentials, too
	case ok:
		registration, err := a.current(cluster, certificate)
		if err != nil {
			return nil, false, err
		}
		out := *response
		out.User = by(response.User, registration)
		return &out, true, nil
	case req.Header.Get("Authorization") != "" || !a.justExpired(req, certificate):
		return response, ok, err
	}
	registration, err := a.current(cluster, certificate)
	if err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: by(&user.DefaultInfo{
		Name:   identity.ExpiredAgent(cluster),
		Groups: []string{identity.ExpiredAgentsGroup, user.AllAuthenticated},
	}, registration)}, true, nil
}

// by returns a user with the registration that it was let in by: what it asks for may be
// decided when there is another one.
func by(who user.Info, registration string) user.Info {
	if registration == "" {
		return who
	}
	extra := map[string][]string{}
	maps.Copy(extra, who.GetExtra())
	extra[identity.RegisteredByAnnotation] = []string{registration}
	return &user.DefaultInfo{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra}
}

// presented is the certificate that a client has shown the key of.
func presented(req *http.Request) *x509.Certificate {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return nil
	}
	return req.TLS.PeerCertificates[0]
}

// justExpired reports whether nothing is wrong with a certificate but that it has
// expired, not long ago.
func (a *agents) justExpired(req *http.Request, certificate *x509.Certificate) bool {
	now := a.clock.Now()
	if !now.After(certificate.NotAfter) || now.Sub(certificate.NotAfter) > a.grace {
		return false
	}
	if !slices.Equal(certificate.Subject.Organization, []string{identity.AgentsGroup}) {
		return false
	}
	opts, ok := a.verify()
	if !ok {
		return false
	}
	opts.CurrentTime = certificate.NotAfter
	if opts.Intermediates == nil && len(req.TLS.PeerCertificates) > 1 {
		opts.Intermediates = x509.NewCertPool()
		for _, between := range req.TLS.PeerCertificates[1:] {
			opts.Intermediates.AddCert(between)
		}
	}
	_, err := certificate.Verify(opts)
	return err == nil
}

// signedAfter is the longest time between a certificate's NotBefore and its signing.
const signedAfter = 5 * time.Minute

// current returns the registration that a certificate belongs to, and refuses one of an
// earlier registration. An agent without a role has no rights anyway.
func (a *agents) current(cluster string, certificate *x509.Certificate) (registration string, err error) {
	role, err := a.roles.Get(identity.Role(cluster))
	if err != nil || role.Annotations[identity.NotBeforeAnnotation] == "" {
		return "", nil //nolint:nilerr // see the doc comment
	}
	registered, err := time.Parse(time.RFC3339, role.Annotations[identity.NotBeforeAnnotation])
	if err != nil {
		return "", fmt.Errorf("read when cluster %s was registered: %w", cluster, err)
	}
	if certificate.NotBefore.Add(signedAfter).Before(registered) {
		return "", errEarlier
	}
	return role.Annotations[identity.RegisteredByAnnotation], nil
}
