// Package impersonation decides who acts for a Kustomization: the clients that they read and write with, and
// the hint to give where the account behind one lacks a right.
//
// In go Kustomizations and the rules of tenancy; out come clients that act as service accounts, and
// errors with the commands that grant what was missing. It reads service accounts and writes nothing.
package impersonation

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

// New returns the Actors that follow the rules. Their clients connect to the hub with config, and use the
// scheme and the mapper of the given client; live reads without a cache. It returns an error if config
// is unusable.
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

// mostClients is how many clients are kept. Tenants may name any number of accounts, so the map needs a
// bound; it is simply emptied, as a client is cheap to make again.
const mostClients = 1024

// Actor is who acts for a Kustomization.
type Actor struct {
	tenancy.Identity
	// Client acts as them.
	client.Client
}

// Sees returns the only namespace whose Kustomizations messages about one of the given namespace may name; empty for all.
func (a Actor) Sees(namespace string) string {
	if a.Privileged() {
		return ""
	}
	return namespace
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

// Subject returns what decides who acts for a Kustomization. The ConfigMaps and Secrets
// of spec.postBuild are no references in this sense, as they are always in its own namespace.
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
		return true, nil // no account can have such a name
	}
	err := live.Get(ctx, as.ServiceAccount, &corev1.ServiceAccount{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("look up the service account %s: %w", as.ServiceAccount, err)
	}
	return err != nil, nil
}

// Explained adds to an error the commands that grant the missing rights, if rights were missing.
func (a Actor) Explained(err error) error {
	if err == nil {
		return nil
	}
	return hinting(err, a.Hint(refusalsIn(err)...))
}

// Explained does what Actor.Explained does, but where the account does not exist the hint is to create it,
// as rights are of no use before that. An account that cannot be looked up is taken to exist.
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

// refusalsIn returns the texts in which a server may say that a right is missing. Of a Refusal these are the
// messages of all findings, as its own text spells out only the first few.
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

// hinting returns an error that ends with a hint, if there is one. Parts of an error's text come from
// manifests, which tenants write: tenancy.Foreign sees to it that these are not taken for hints.
func hinting(err error, hint string) error {
	if text := err.Error(); tenancy.Foreign(text) != text {
		err = errors.New(tenancy.Foreign(text))
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
