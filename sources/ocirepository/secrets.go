package ocirepository

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// connect reads the credentials and finds the Remote. It opens no connection, but for a login of a cloud.
func (r *Reconciler) connect(ctx context.Context, s *state) (loop.Next, error) {
	spec := s.object.Spec
	host, path, err := oci.Place(spec.URL)
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	logins, err := r.secrets.logins(ctx, s)
	if err != nil {
		return loop.Next{}, err
	}
	access, opts := oci.Access{Login: logins.For(host, path), Insecure: spec.Insecure}, r.opts.Registries
	var certificates map[string][]byte
	if spec.CertSecretRef != nil {
		if certificates, err = r.secrets.secret(ctx, s, spec.CertSecretRef.Name, "spec.certSecretRef"); err != nil {
			return loop.Next{}, err
		}
		if access.TLS, err = oci.ParseTLS(certificates); err != nil {
			return loop.Next{}, s.classify(fmt.Errorf("Secret %s/%s of spec.certSecretRef: %w", s.key.Namespace, spec.CertSecretRef.Name, err))
		}
	}
	if access.Proxy, err = r.secrets.of(s).Proxy(ctx, spec.ProxySecretRef); err != nil {
		return loop.Next{}, err
	}
	if s.cloud != nil {
		if access.Login, err = r.clouds.login(ctx, s, host, access); err != nil {
			return loop.Next{}, err
		}
	}
	opts.Timeout = defaultTimeout
	if spec.Timeout != nil {
		opts.Timeout = spec.Timeout.Duration
	}
	s.remote, err = r.remotes.of(s.key, printOf(opts, spec.URL, access, certificates), func() (*oci.Remote, error) { return oci.NewRemote(spec.URL, access, opts) })
	if err != nil {
		return loop.Next{}, s.classify(err)
	}
	return loop.Next{}, nil
}

// reader reads what a source refers to.
type reader struct {
	hub client.Reader
	// egress decides which servers are asked for revoked certificates.
	egress egress.Dialer
}

// logins reads the logins of the Secret of the spec, and of those of its ServiceAccount.
func (r reader) logins(ctx context.Context, s *state) (oci.Logins, error) {
	var out oci.Logins
	spec := s.object.Spec
	add := func(name, by string) error {
		data, err := r.secret(ctx, s, name, by)
		if err != nil {
			return err
		}
		if ofCloud(spec, name, data) {
			s.cloud = &cloudlogin.Question{Provider: spec.Provider, Secret: data}
			return nil
		}
		if err := out.Add(data); err != nil {
			return s.classify(fmt.Errorf("Secret %s/%s of %s: %w", s.key.Namespace, name, by, err))
		}
		return nil
	}
	if spec.SecretRef != nil {
		if err := add(spec.SecretRef.Name, "spec.secretRef"); err != nil {
			return out, err
		}
	}
	if spec.ServiceAccountName == "" {
		return out, nil
	}
	var account corev1.ServiceAccount
	key := client.ObjectKey{Namespace: s.key.Namespace, Name: spec.ServiceAccountName}
	err := r.hub.Get(ctx, key, &account)
	switch {
	case apierrors.IsNotFound(err):
		return out, loop.Waiting(sourcev1.AuthenticationFailedReason, min(s.interval, fetching.Awaited), fmt.Errorf("the ServiceAccount %s of spec.serviceAccountName is not there: create it", key))
	case err != nil:
		return out, loop.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf("read ServiceAccount %s: %w", key, err))
	}
	for _, ref := range account.ImagePullSecrets {
		if err := add(ref.Name, "ServiceAccount "+account.Name); err != nil {
			return out, err
		}
	}
	return out, nil
}

// secret reads a Secret of the source's namespace.
func (r reader) secret(ctx context.Context, s *state, name, by string) (map[string][]byte, error) {
	return r.of(s).Read(ctx, name, by)
}

func (r reader) of(s *state) fetching.Secrets {
	return fetching.Secrets{Hub: r.hub, Namespace: s.key.Namespace, Interval: s.interval}
}

// print is a digest of all that a Remote is made from.
type print [sha256.Size]byte

func printOf(opts oci.Options, address string, access oci.Access, certificates map[string][]byte) print {
	proxy := ""
	if access.Proxy != nil {
		proxy = access.Proxy.String()
	}
	login := access.Login
	return sha256.Sum256(fmt.Appendf(nil, "%q %t %s %q %q %q %q %q %q", address, access.Insecure, opts.Timeout, proxy,
		login.Username, login.Password, login.IdentityToken, login.RegistryToken, certificates))
}

// remotes are the Remotes of the last reconciles, which know how their registries want to be asked. The zero value has none.
type remotes struct {
	mu  sync.Mutex
	all map[client.ObjectKey]known
}

type known struct {
	print  print
	remote *oci.Remote
}

// of returns the Remote of a source, made anew if what it is made from has changed.
func (r *remotes) of(key client.ObjectKey, print print, make func() (*oci.Remote, error)) (*oci.Remote, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, found := r.all[key]; found && have.print == print {
		return have.remote, nil
	}
	remote, err := make()
	if err != nil {
		return nil, err
	}
	if have, found := r.all[key]; found {
		have.remote.Close()
	}
	if r.all == nil {
		r.all = map[client.ObjectKey]known{}
	}
	r.all[key] = known{print, remote}
	return remote, nil
}

// forget drops the Remote of a source that is gone.
func (r *remotes) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, found := r.all[key]; found {
		have.remote.Close()
		delete(r.all, key)
	}
}
