package repository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/unserved"
	"github.com/flotilla-io/flotilla/sources/cloudlogin"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
)

// access finds out by which credentials and proxy a repository is reached.
type access struct {
	hub    client.Reader
	tokens *githubapp.Tokens
	clouds *cloudlogin.Logins
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
	case spec.Provider == sourcev1.GitProviderAzure, spec.Provider == sourcev1.GitProviderAWS:
		return a.byCloud(ctx, s, key, cloudlogin.Question{Provider: spec.Provider, Secret: data, Way: egress.Way{TLS: cred.TLS, Proxy: opts.Proxy}}, cred)
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
	s.forget = func() { a.tokens.Forget(*cred.App) }
	return cred.WithToken(token), nil
}

// byCloud returns credentials with what the cloud of the repository takes for those of the Secret.
func (a access) byCloud(ctx context.Context, s *state, key client.ObjectKey, q cloudlogin.Question, cred git.Credentials) (git.Credentials, error) {
	u, err := url.Parse(s.object.Spec.URL)
	switch {
	case err != nil || u.Scheme != "https":
		return git.Credentials{}, loop.Stalled(sourcev1.URLInvalidReason, fmt.Errorf("spec.provider %s needs an https URL, as a login of the cloud is sent there", q.Provider))
	case cred.App != nil || cred.Username+cred.BearerToken != "":
		return git.Credentials{}, s.classify(fmt.Errorf("Secret %s: %w: spec.provider %s takes credentials of the cloud, and neither username/password, bearerToken nor the keys of a GitHub App", key, git.ErrCredentials, q.Provider))
	}
	q.Host, q.Path = u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	login, err := a.clouds.Git(ctx, q)
	if err != nil {
		return git.Credentials{}, s.classify(fmt.Errorf("Secret %s: %w", key, err))
	}
	s.forget = func() { a.clouds.Forget(q) }
	cred.Username, cred.Password, cred.BearerToken = login.Username, login.Password, login.Bearer
	return cred, nil
}

// doubt drops a token that a server has refused.
func doubt(s *state, err error) {
	if s.forget != nil && errors.Is(err, git.ErrUnauthorized) {
		s.forget()
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
