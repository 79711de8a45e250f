package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/approvals"
	"github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/limits"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// source is the artifact that a run builds from.
type source struct {
	inventory.Source
	// revision is the name for people, such as "main@sha1:9f2c…".
	revision string
	// included names what the artifact holds of other sources; empty for nothing. leftOut is what its metadata says of submodules without files.
	included, leftOut string
	// origin is the revision from which the content was packed; empty for none.
	origin string
	// digest names the artifact in the store, and since is when that was made.
	digest string
	since  time.Time
	// commit is the artifact's metadata about its commit, by the keys of the API.
	commit map[string]string
	// verify is which signatures the source asks for.
	verify provenance.Demand
	// allows are the objects whose deletion the commit allows, separated by commas.
	allows string
}

const (
	// originAnnotation is the metadata key under which an artifact names the revision that it was made from.
	originAnnotation = "org.opencontainers.image.revision"
	// soon is the pause before looking again for something that a watch should report earlier.
	soon = 30 * time.Second
)

// prerequisites has the phases that find out whether a revision may be applied at all.
type prerequisites struct {
	hub                 client.Reader
	allowCrossNamespace bool
	dependencies        dependencies.Checker
	limits              limits.Checker
	targets             *target.Targets
}

// validate ends a run whose spec asks for something unsupported, has an invalid annotation, or exceeds a limit.
func (p prerequisites) validate(ctx context.Context, s *state) (loop.Next, error) {
	if field, instead := kustomizations.Unsupported(s.ks.Spec); field != "" {
		return loop.Next{}, loop.Stalled(kustomizations.ReasonNotSupported, fmt.Errorf("%s is not supported yet: %s", field, instead))
	}
	if _, err := health.MaxUnreachableOf(s.ks); err != nil {
		return loop.Next{}, loop.Stalled(kustomizations.ReasonInvalidAnnotation, err)
	}
	return loop.Next{}, p.limits.Kustomizations(ctx, s.ks)
}

// impersonate returns the phase that finds out who acts for a Kustomization. When the account
// changes, the applier's memory is dropped: the dry runs that it saves also check rights.
func impersonate(who *impersonation.Actors, known *applier.Applier) loop.Phase[state] {
	return func(_ context.Context, s *state) (loop.Next, error) {
		var err error
		if s.actor, err = who.Of(s.ks); err != nil {
			return loop.Next{}, err
		}
		if err := s.actor.Check(); err != nil {
			return loop.Next{}, loop.Stalled(kustomizations.ReasonInvalidAccount, err)
		}
		if s.last.setAccount(s.actor.ServiceAccount) {
			known.Forget(s.owner)
		}
		s.diff.at = target.Target{Client: s.actor, Applier: known}
		return loop.Next{}, nil
	}
}

// findSource reads the artifact that is to be applied. It refuses an invalid spec even if there is no artifact.
func (p prerequisites) findSource(ctx context.Context, s *state) (loop.Next, error) {
	err := p.readSource(ctx, s)
	if err != nil {
		if next, refusal := p.validate(ctx, s); refusal != nil {
			return next, refusal
		}
	}
	return loop.Next{}, err
}

// readSource reads the source of a supported kind. For another kind it does nothing, and validate reports it.
func (p prerequisites) readSource(ctx context.Context, s *state) error {
	s.source.Source = inventory.SourceOf(s.ks)
	if _, followed := origins.KindOf(s.source.Kind); !followed {
		return nil
	}
	if s.source.Namespace != s.ks.Namespace && !p.allowCrossNamespace {
		return loop.Stalled(acl.AccessDeniedReason, fmt.Errorf("the source %s is in another namespace: move one of them, or start the controllers with --allow-cross-namespace-references",
			s.source.Source))
	}
	source, err := origins.Read(ctx, p.hub, s.source.Source)
	facts := origins.FactsOf(source)
	switch {
	case apierrors.IsNotFound(err):
		return loop.Waiting(meta.ArtifactFailedReason, intervals.Retry(s.ks), fmt.Errorf("the source %s does not exist%s: create it, or correct spec.sourceRef",
			s.source.Source, propagation.DidYouMean(hint.Source(ctx, p.hub, s.ks, s.source.Source))))
	case err != nil:
		return fmt.Errorf("read the source %s: %w", s.source.Source, err)
	case source.GetArtifact() == nil:
		return loop.Waiting(meta.ArtifactFailedReason, soon, fmt.Errorf("the source %s has no artifact yet: look at its conditions", s.source.Source))
	case facts.Unverified != "":
		return loop.Waiting(meta.ArtifactFailedReason, soon, errors.New(facts.Unverified))
	}
	artifact := source.GetArtifact()
	s.source.verify, s.source.included, s.source.leftOut = facts.Verify, facts.Included, artifact.Metadata[gitopsv1alpha1.SubmodulesLeftOutKey]
	s.source.revision, s.source.digest, s.source.origin = artifact.Revision, artifact.Digest, artifact.Metadata[originAnnotation]
	s.source.since, s.source.allows = artifact.LastUpdateTime.Time, artifact.Metadata[gitopsv1alpha1.CommitAllowDeleteKey]
	s.source.commit = provenance.Commit(artifact.Metadata)
	return nil
}

// awaitApproval ends a run while a revision that is not applied yet, and changes something here, lacks an approval. A watch starts a
// run when it has it.
func (p prerequisites) awaitApproval(ctx context.Context, s *state) (loop.Next, error) {
	if s.again {
		return loop.Next{}, nil
	}
	again, err := approvals.Await(ctx, p.hub, approvals.Revision{Of: s.source.Source, Name: s.source.revision, Age: s.now.Sub(s.source.since)}, intervals.Retry(s.ks))
	return s.quietly(again), err
}

// awaitDependencies ends a run while a dependency is not ready. A watch starts a run when it becomes ready.
func (p prerequisites) awaitDependencies(ctx context.Context, s *state) (loop.Next, error) {
	if len(s.ks.Spec.DependsOn) == 0 {
		return loop.Next{}, nil
	}
	why, err := p.dependencies.Unready(ctx, dependencies.Query{Of: s.ks, Actor: s.actor, At: s.artifact()})
	if err == nil && why != "" {
		err = loop.Waiting(meta.DependencyNotReadyReason, soon, errors.New(why))
	}
	return loop.Next{}, err
}

// checkLastApplied finds out whether the revision is applied already, so that only its health is checked.
func checkLastApplied(_ context.Context, s *state) (loop.Next, error) {
	s.current = s.last.load(s)
	return loop.Next{}, nil
}
