package fetching

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
)

// Secrets reads the Secrets that the sources of a namespace name.
type Secrets struct {
	Hub       client.Reader
	Namespace string
	// Interval is that of the source.
	Interval time.Duration
}

// Read returns the data of a Secret that a field names.
func (s Secrets) Read(ctx context.Context, name, field string) (map[string][]byte, error) {
	key := client.ObjectKey{Namespace: s.Namespace, Name: name}
	var secret corev1.Secret
	err := s.Hub.Get(ctx, key, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, loop.Waiting(sourcev1.AuthenticationFailedReason, min(s.Interval, Awaited), fmt.Errorf("the Secret %s of %s is not there: create it", key, field))
	case err != nil:
		return nil, loop.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf("read Secret %s: %w", key, err))
	}
	return secret.Data, nil
}

// Proxy returns the proxy of the Secret that spec.proxySecretRef names; nil for none.
func (s Secrets) Proxy(ctx context.Context, ref *meta.LocalObjectReference) (*url.URL, error) {
	if ref == nil {
		return nil, nil
	}
	data, err := s.Read(ctx, ref.Name, "spec.proxySecretRef")
	if err != nil {
		return nil, err
	}
	proxy, err := egress.ParseProxy(data)
	if err != nil {
		return nil, loop.Waiting(sourcev1.AuthenticationFailedReason, s.Interval, s.About(ref.Name, "spec.proxySecretRef", err))
	}
	return proxy, nil
}

// About returns an error about the content of a Secret that a field names.
func (s Secrets) About(name, field string, err error) error {
	return fmt.Errorf("Secret %s/%s of %s: %w", s.Namespace, name, field, err)
}
