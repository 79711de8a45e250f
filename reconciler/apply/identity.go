package apply

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

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
)

// actors hand out the client that a Kustomization reads and writes with: one
// that acts as a service account of its namespace, or the loop's own where its
// namespace is privileged.
type actors struct {
	config  *rest.Config
	options client.Options
	own     client.Client
	live    client.Reader
	rules   tenancy.Rules

	mu        sync.Mutex
	byAccount map[client.ObjectKey]client.Client
}

func newActors(deps Deps, rules tenancy.Rules) (*actors, error) {
	options := client.Options{Scheme: deps.Hub.Scheme(), Mapper: deps.Hub.RESTMapper()}
	own, err := client.New(deps.Config, options)
	if err != nil {
		return nil, fmt.Errorf("connect to the control plane: %w", err)
	}
	return &actors{
		config: deps.Config, options: options, own: own, live: deps.Live, rules: rules,
		byAccount: map[client.ObjectKey]client.Client{},
	}, nil
}

// mostClients is how many are kept: tenants name as many accounts as they like, one
// after the other, and a client is soon made anew.
const mostClients = 1024

// actor is who acts for a Kustomization.
type actor struct {
	tenancy.Identity
	// Client acts as them.
	client.Client
}

// of returns who acts for a Kustomization.
func (a *actors) of(ks *kustomizev1.Kustomization) (actor, error) {
	identity := a.rules.Of(subject(ks))
	if identity.Privileged() {
		return actor{identity, a.own}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if have := a.byAccount[identity.ServiceAccount]; have != nil {
		return actor{identity, have}, nil
	}
	if len(a.byAccount) >= mostClients {
		clear(a.byAccount)
	}
	config := rest.CopyConfig(a.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: identity.UserName()}
	as, err := client.New(config, a.options)
	if err != nil {
		return actor{}, fmt.Errorf("act as the service account %s: %w", identity.ServiceAccount, err)
	}
	a.byAccount[identity.ServiceAccount] = as
	return actor{identity, as}, nil
}

// identify is the phase that finds out who acts for a Kustomization. What one
// account was found to stand says nothing about what another may do.
func (a *actors) identify(known *applier.Applier) loop.Phase[state] {
	return func(_ context.Context, s *state) (loop.Next, error) {
		var err error
		if s.actor, err = a.of(s.ks); err != nil {
			return loop.Next{}, err
		}
		if err := s.actor.Check(); err != nil {
			return loop.Next{}, loop.Stalled(ReasonInvalidAccount, err)
		}
		if s.last.takes(s.actor.ServiceAccount) {
			known.Forget(s.owner)
		}
		return loop.Next{}, nil
	}
}

// subject lists what decides who acts for a Kustomization. ConfigMaps and Secrets
// of spec.postBuild are always in its own namespace.
func subject(ks *kustomizev1.Kustomization) tenancy.Subject {
	refs := []tenancy.Reference{{Field: "spec.sourceRef", Namespace: ks.Spec.SourceRef.Namespace}}
	for i, ref := range ks.Spec.DependsOn {
		refs = append(refs, tenancy.Reference{Field: fmt.Sprintf("spec.dependsOn[%d]", i), Namespace: ref.Namespace})
	}
	return tenancy.Subject{Namespace: ks.Namespace, ServiceAccountName: ks.Spec.ServiceAccountName, References: refs}
}

// gone reports whether the service account that a Kustomization acts as does
// not exist (any more).
func gone(ctx context.Context, live client.Reader, as tenancy.Identity) (bool, error) {
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

// explained adds to an error what grants the rights that were missing, if any were.
func (a actor) explained(err error) error {
	if err == nil {
		return nil
	}
	return hinting(err, a.Hint(refusalsIn(err)...))
}

// explained is the same, but for an account that does not exist: that is what is to be
// mended first. One that cannot be looked up is taken to be there.
func (a *actors) explained(ctx context.Context, s *state, err error) error {
	if err == nil {
		return nil
	}
	hint := s.actor.Hint(refusalsIn(err)...)
	if hint != "" {
		if orphaned, lookup := gone(ctx, a.live, s.actor.Identity); lookup == nil && orphaned {
			hint = s.actor.Missing()
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
