package apply

import (
	"context"
	"fmt"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers hand out the client that a Kustomization writes with: the loop's own,
// or one that acts as a service account of its namespace.
type writers struct {
	config         *rest.Config
	options        client.Options
	own            client.Client
	defaultAccount string

	mu        sync.Mutex
	byAccount map[client.ObjectKey]client.Client
}

func newWriters(deps Deps, defaultAccount string) (*writers, error) {
	options := client.Options{Scheme: deps.Hub.Scheme(), Mapper: deps.Hub.RESTMapper()}
	own, err := client.New(deps.Config, options)
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return &writers{
		config: deps.Config, options: options, own: own, defaultAccount: defaultAccount,
		byAccount: map[client.ObjectKey]client.Client{},
	}, nil
}

// account returns the service account that a Kustomization acts as.
func (w *writers) account(ks *kustomizev1.Kustomization) (client.ObjectKey, bool) {
	name := ks.Spec.ServiceAccountName
	if name == "" {
		name = w.defaultAccount
	}
	return client.ObjectKey{Namespace: ks.Namespace, Name: name}, name != ""
}

// of returns the client that a Kustomization writes with.
func (w *writers) of(ks *kustomizev1.Kustomization) (client.Client, error) {
	account, named := w.account(ks)
	if !named {
		return w.own, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.byAccount[account]; have != nil {
		return have, nil
	}
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + account.Namespace + ":" + account.Name}
	writer, err := client.New(config, w.options)
	if err != nil {
		return nil, fmt.Errorf("act as the service account %s: %w", account, err)
	}
	w.byAccount[account] = writer
	return writer, nil
}

// gone reports whether the service account that a Kustomization acts as does
// not exist (any more).
func (w *writers) gone(ctx context.Context, live client.Reader, ks *kustomizev1.Kustomization) (bool, error) {
	account, named := w.account(ks)
	if !named {
		return false, nil
	}
	err := live.Get(ctx, account, &corev1.ServiceAccount{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look up the service account %s: %w", account, err)
	}
	return err != nil, nil
}
