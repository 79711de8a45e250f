package bucket

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// connect reads the credentials and finds what is known of the bucket; it opens no connection.
func (r *Reconciler) connect(ctx context.Context, s *state) (loop.Next, error) {
	spec := s.object.Spec
	switch spec.Provider {
	case sourcev1.BucketProviderGoogle:
		return loop.Next{}, connectGoogle(ctx, r, s)
	case sourcev1.BucketProviderAzure:
		return loop.Next{}, connectAzure(ctx, r, s)
	}
	a := authority{state: s}
	access := s3.Access{Keys: a.keys(ctx, spec.SecretRef), Directory: a.directory(ctx, spec.STS, spec.SecretRef), TLS: a.tls(ctx, spec.CertSecretRef, "spec.certSecretRef")}
	if a.err == nil {
		access.Proxy, a.err = s.secrets.Proxy(ctx, spec.ProxySecretRef)
	}
	if a.err != nil {
		return loop.Next{}, a.err
	}
	place := s3.Place{Endpoint: spec.Endpoint, Bucket: spec.BucketName, Region: spec.Region, Insecure: spec.Insecure}
	var err error
	s.known, err = r.known.of(s.key, printOf(place, access, a.read), func() (remote, error) { return s3.NewRemote(place, access, r.opts.Servers) })
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	return loop.Next{}, nil
}

// authority reads what a source authenticates with, and notes the first error, after which it reads nothing.
type authority struct {
	*state
	// read is the content of all Secrets that were read.
	read []map[string][]byte
	err  error
}

// secret reads the Secret of a field, if it names one.
func (a *authority) secret(ctx context.Context, ref *meta.LocalObjectReference, field string) (data map[string][]byte, named bool) {
	if ref == nil || a.err != nil {
		return nil, false
	}
	data, a.err = a.secrets.Read(ctx, ref.Name, field)
	a.read = append(a.read, data)
	return data, a.err == nil
}

// note notes an error about the content of a Secret.
func (a *authority) note(ref *meta.LocalObjectReference, field string, err error) {
	if err != nil {
		a.err = loop.Waiting(sourcev1.AuthenticationFailedReason, a.interval, a.secrets.About(ref.Name, field, err))
	}
}

func (a *authority) keys(ctx context.Context, ref *meta.LocalObjectReference) (out s3.Keys) {
	const field = "spec.secretRef"
	if data, named := a.secret(ctx, ref, field); named {
		var err error
		out, err = s3.ParseKeys(data)
		a.note(ref, field, err)
	}
	return out
}

func (a *authority) tls(ctx context.Context, ref *meta.LocalObjectReference, field string) (out *tls.Config) {
	if data, named := a.secret(ctx, ref, field); named {
		var err error
		out, err = oci.ParseTLS(data)
		a.note(ref, field, err)
	}
	return out
}

// directory returns the service that gives out keys; nil for none, as where there are keys already.
func (a *authority) directory(ctx context.Context, sts *sourcev1.BucketSTSSpec, keys *meta.LocalObjectReference) *s3.Directory {
	const field = "spec.sts.secretRef"
	if sts == nil || keys != nil || a.err != nil {
		return nil
	}
	if sts.SecretRef == nil {
		a.err = loop.Stalled(sourcev1.AuthenticationFailedReason, fmt.Errorf("spec.sts has no login: name a Secret with username and password in %s", field))
		return nil
	}
	out := &s3.Directory{Endpoint: sts.Endpoint, TLS: a.tls(ctx, sts.CertSecretRef, "spec.sts.certSecretRef")}
	if data, named := a.secret(ctx, sts.SecretRef, field); named {
		var err error
		out.Username, out.Password, err = s3.ParseLogin(data)
		a.note(sts.SecretRef, field, err)
	}
	return out
}

func printOf(place s3.Place, access s3.Access, secrets []map[string][]byte) print {
	proxy, directory := "", ""
	if access.Proxy != nil {
		proxy = access.Proxy.String()
	}
	if access.Directory != nil {
		directory = access.Directory.Endpoint
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %q %q %q", place.Endpoint, place.Bucket, place.Region, place.Insecure, proxy, directory, secrets))
}
