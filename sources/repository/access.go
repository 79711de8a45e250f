package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// access finds out by which credentials and proxy a repository is reached.
type access struct {
	hub    client.Reader
	tokens *githubapp.Tokens
}

// credentials returns what the Secret of the repository holds, with a token if that is a GitHub App.
func (a access) credentials(ctx context.Context, s *state, opts git.Options) (git.Credentials, error) {
	spec := s.object.Spec
	byApp := spec.Provider == sourcev1.GitProviderGitHub
	if spec.SecretRef == nil {
		if why := unserved.AppWithoutSecret(spec); why != "" {
			return git.Credentials{}, loop.Stalled(sourcev1.AuthenticationFailedReason, errors.New(why))
		}
		return git.Credentials{}, nil
	}
	key, data, err := a.secret(ctx, s, "spec.secretRef", spec.SecretRef)
	if err != nil {
		return git.Credentials{}, err
	}
	needed := fmt.Errorf("Secret %s: %w: spec.provider github needs the keys of a GitHub App, and an https URL", key, git.ErrCredentials)
	if byApp && !githubapp.In(data) {
		return git.Credentials{}, s.classify(needed)
	}
	cred, err := git.ParseCredentials(spec.URL, data)
	if err != nil {
		return git.Credentials{}, s.classify(fmt.Errorf("Secret %s: %w", key, err))
	}
	switch {
	case byApp && cred.App == nil:
		return git.Credentials{}, s.classify(needed)
	case !byApp && cred.App != nil:
		return git.Credentials{}, s.classify(fmt.Errorf("Secret %s: %w: the keys of a GitHub App need spec.provider github", key, git.ErrCredentials))
	case !byApp:
		return cred, nil
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	way := opts.Egress.Transport(egress.Way{TLS: cred.TLS, Proxy: opts.Proxy})
	defer way.CloseIdleConnections()
	token, err := a.tokens.Token(ctx, *cred.App, way)
	if err != nil {
		return git.Credentials{}, s.classify(fmt.Errorf("Secret %s: %w", key, err))
	}
	s.app = cred.App
	return cred.WithToken(token), nil
}

// doubt drops a token that a server has refused.
func (a access) doubt(s *state, err error) {
	if s.app != nil && errors.Is(err, git.ErrUnauthorized) {
		a.tokens.Forget(*s.app)
	}
}

// secret returns the Secret that a field refers to. One that is not there is waited for.
func (a access) secret(ctx context.Context, s *state, field string, ref *meta.LocalObjectReference) (client.ObjectKey, map[string][]byte, error) {
	key := client.ObjectKey{Namespace: s.object.Namespace, Name: ref.Name}
	var secret corev1.Secret
	err := a.hub.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return key, nil, loop.Waiting(sourcev1.AuthenticationFailedReason, min(s.interval, fetching.Awaited), fmt.Errorf("the Secret %s of %s is not there: create it", key, field))
	}
	if err != nil {
		return key, nil, loop.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf("read Secret %s: %w", key, err))
	}
	return key, secret.Data, nil
}

// proxy returns the proxy that the repository names; nil for none.
func (a access) proxy(ctx context.Context, s *state) (*url.URL, error) {
	ref := s.object.Spec.ProxySecretRef
	if ref == nil {
		return nil, nil
	}
	key, data, err := a.secret(ctx, s, "spec.proxySecretRef", ref)
	if err != nil {
		return nil, err
	}
	proxy, err := egress.ParseProxy(data)
	if err != nil {
		return nil, loop.Waiting(sourcev1.AuthenticationFailedReason, s.interval, fmt.Errorf("Secret %s of spec.proxySecretRef: %w", key, err))
	}
	return proxy, nil
}
