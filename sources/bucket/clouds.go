package bucket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/azureblob"
	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/s3"
)

const (
	// googleKey has the key of a service account in a Secret, as Flux has it.
	googleKey   = "serviceaccount"
	googleScope = "https://www.googleapis.com/auth/devstorage.read_only"

	credentials = "spec.secretRef"
)

// connectGoogle finds what is known of a bucket of Google, which is read as one of S3, with a token in place of a signature.
func connectGoogle(ctx context.Context, r *Reconciler, s *state) error {
	spec := s.object.Spec
	a := authority{state: s}
	login := a.google(ctx, spec.SecretRef)
	access, err := a.cloud(ctx, r.opts.Trust)
	if err != nil {
		return err
	}
	place := s3.Place{Endpoint: spec.Endpoint, Bucket: spec.BucketName, Region: spec.Region, Insecure: spec.Insecure}
	s.known, err = r.known.of(s.key, printOf(place, access, a.read), func() (remote, error) {
		access.Bearer = bearer{cloudtoken.NewSource(login, tokenClient(r.opts.Servers.Egress, access), r.opts.Clock)}
		return s3.NewRemote(place, access, r.opts.Servers)
	})
	if err != nil {
		return s.classify(err)
	}
	return nil
}

// connectAzure finds what is known of a container of Azure.
func connectAzure(ctx context.Context, r *Reconciler, s *state) error {
	spec := s.object.Spec
	a := authority{state: s}
	by := a.azure(ctx, spec.SecretRef)
	access, err := a.cloud(ctx, r.opts.Trust)
	if err != nil {
		return err
	}
	place := azureblob.Place{Endpoint: spec.Endpoint, Container: spec.BucketName}
	print := printOf(s3.Place{Endpoint: spec.Endpoint, Bucket: spec.BucketName}, access, a.read)
	s.known, err = r.known.of(s.key, print, func() (remote, error) {
		return azureblob.NewRemote(place, by, egress.Way{TLS: access.TLS, Proxy: access.Proxy}, r.opts.Servers)
	})
	if err != nil {
		return s.classify(err)
	}
	return nil
}

// cloud returns how the servers of a cloud are spoken to, or the first error of the authority.
func (a *authority) cloud(ctx context.Context, trust *tls.Config) (access s3.Access, err error) {
	access.TLS = trust
	if given := a.tls(ctx, a.object.Spec.CertSecretRef, "spec.certSecretRef"); given != nil {
		access.TLS = given
	}
	if a.err == nil {
		access.Proxy, a.err = a.secrets.Proxy(ctx, a.object.Spec.ProxySecretRef)
	}
	return access, a.err
}

func (a *authority) google(ctx context.Context, ref *meta.LocalObjectReference) (out cloudtoken.Login) {
	if data, named := a.secret(ctx, ref, credentials); named {
		var err error
		if out, err = cloudtoken.ParseGoogle(data[googleKey], googleScope); err != nil {
			err = fmt.Errorf("%s: %w", googleKey, err)
		}
		a.note(ref, credentials, err)
	}
	return out
}

func (a *authority) azure(ctx context.Context, ref *meta.LocalObjectReference) (out azureblob.Access) {
	if data, named := a.secret(ctx, ref, credentials); named {
		var err error
		out, err = azureblob.ParseAccess(data)
		a.note(ref, credentials, err)
	}
	return out
}

// tokenClient asks for tokens the way that a bucket is asked.
func tokenClient(by egress.Dialer, access s3.Access) *http.Client {
	return &http.Client{
		Transport:     by.Transport(egress.Way{TLS: access.TLS, Proxy: access.Proxy}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bearer gives out tokens of Google.
type bearer struct{ source *cloudtoken.Source }

// Token implements s3.Bearer.
func (b bearer) Token(ctx context.Context) (string, error) {
	token, err := b.source.Token(ctx)
	if errors.Is(err, cloudtoken.ErrRefused) {
		return "", fmt.Errorf("%w: %w: put the key of a service account that is there into the Secret", s3.ErrUnauthorized, err)
	}
	return token, err
}
