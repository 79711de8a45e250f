// Package actors knows who acts for Kustomizations: the clients that they read and write with, and
// what to say where the account behind one lacks a right.
//
// In go Kustomizations and the rules of tenancy; out come clients that act as service accounts, and
// errors with the commands that grant what was missing. It reads service accounts and writes nothing.
package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// Actors hand out the client that a Kustomization reads and writes with: one
// that acts as a service account of its namespace, or the loop's own where its
// namespace is privileged.
type Actors struct {
	config  *rest.Config
	options client.Options
	own     client.Client
	live    client.Reader
	rules   tenancy.Rules

	mu        sync.Mutex
	byAccount map[client.ObjectKey]client.Client
}

// New returns the actors by the rules. Those that are made reach the hub by the connection, and
// serve kinds as its client does; live reads without a cache. It errs if the connection's settings
// are unusable.
func New(hub client.Client, live client.Reader, config *rest.Config, rules tenancy.Rules) (*Actors, error) {
	options := client.Options{Scheme: hub.Scheme(), Mapper: hub.RESTMapper()}
	own, err := client.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return &Actors{
		config: config, options: options, own: own, live: live, rules: rules,
		byAccount: map[client.ObjectKey]client.Client{},
	}, nil
}

// mostClients is how many are kept: tenants name as many accounts as they like, one
// after the other, and a client is soon made anew.
const mostClients = 1024

// Actor is who acts for a Kustomization.
type Actor struct {
	tenancy.Identity
	// Client acts as them.
	client.Client
}

// Of returns who acts for a Kustomization.
func (a *Actors) Of(ks *kustomizev1.Kustomization) (Actor, error) {
	identity := a.rules.Of(Subject(ks))
	if identity.Privileged() {
		return Actor{identity, a.own}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if have := a.byAccount[identity.ServiceAccount]; have != nil {
		return Actor{identity, have}, nil
	}
	if len(a.byAccount) >= mostClients {
		clear(a.byAccount)
	}
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: identity.UserName()}
	as, err := client.New(config, a.options)
	if err != nil {
		return Actor{}, fmt.Errorf("act as the service account %s: %w", identity.ServiceAccount, err)
	}
	a.byAccount[identity.ServiceAccount] = as
	return Actor{identity, as}, nil
}

// Subject lists what decides who acts for a Kustomization. ConfigMaps and Secrets
// of spec.postBuild are always in its own namespace.
func Subject(ks *kustomizev1.Kustomization) tenancy.Subject {
	refs := []tenancy.Reference{{Field: "spec.sourceRef", Namespace: ks.Spec.SourceRef.Namespace}}
	for i, ref := range ks.Spec.DependsOn {
		refs = append(refs, tenancy.Reference{Field: fmt.Sprintf("spec.dependsOn[%d]", i), Namespace: ref.Namespace})
	}
	return tenancy.Subject{Namespace: ks.Namespace, ServiceAccountName: ks.Spec.ServiceAccountName, References: refs}
}

// Gone reports whether the service account that a Kustomization acts as does
// not exist (any more).
func Gone(ctx context.Context, live client.Reader, as tenancy.Identity) (bool, error) {
	if as.Privileged() {
		return false, nil
	}
	if as.Check() != nil {
		return true, nil // there is none of such a name
	}
	err := live.Get(ctx, as.ServiceAccount, &corev1.ServiceAccount{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look up the service account %s: %w", as.ServiceAccount, err)
	}
	return err != nil, nil
}

// Explained adds to an error what grants the rights that were missing, if any were.
func (a Actor) Explained(err error) error {
	if err == nil {
		return nil
	}
	return hinting(err, a.Hint(refusalsIn(err)...))
}

// Explained is the same, but for an account that does not exist: that is what is to be
// mended first. One that cannot be looked up is taken to be there.
func (a *Actors) Explained(ctx context.Context, who Actor, err error) error {
	if err == nil {
		return nil
	}
	hint := who.Hint(refusalsIn(err)...)
	if hint != "" {
		if orphaned, lookup := Gone(ctx, a.live, who.Identity); lookup == nil && orphaned {
			hint = who.Missing()
		}
	}
	return hinting(err, hint)
}

// refusalsIn are the texts in which a server may say that a right is missing: those of all
// findings, of which a message names but the first.
func refusalsIn(err error) []string {
	var refusal *applier.Refusal
	if !errors.As(err, &refusal) {
		return []string{err.Error()}
	}
	var texts []string
	for _, f := range refusal.Findings {
		if f.Reason == applier.ReasonForbidden {
			texts = append(texts, f.Message)
		}
	}
	return texts
}

// hinting returns an error that ends with a hint, if there is one. Parts of its text are
// from manifests: these are not taken for hints.
func hinting(err error, hint string) error {
	if text := err.Error(); tenancy.Foreign(text) != text {
		err = errors.New(tenancy.Foreign(text))
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
