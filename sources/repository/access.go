package repository

import (
	"context"
	"fmt"
	"net/url"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// access finds out by which credentials and proxy a repository is reached.
type access struct{ hub client.Reader }

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
