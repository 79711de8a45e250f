package reconciler

import (
	"context"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/forecast/rehearsal"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/review"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/clouds"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/githubapp"
	"github.com/flotilla-io/flotilla/sources/repository"
)

func registerReview(_ context.Context, f *fleet) error {
	now := clock.RealClock{}
	reader := repository.NewReader(f.inherited.Client(f.mgr.GetClient()), f.opts.Artifacts, repository.Options{Git: git.Options{Egress: f.opts.Network.Egress}, Clouds: clouds.Built, Namespaces: f.opts.Revisions.Tenancy.In})
	tokens := githubapp.NewTokens(now)
	brake := inventory.DefaultBrake()
	if f.opts.Revisions.Brake != nil {
		brake = *f.opts.Revisions.Brake
	}
	means := rehearsal.Means{
		Hub: f.mgr.GetAPIReader(), Mapper: f.mgr.GetRESTMapper(), Machine: lua.New(lua.Options{Now: now.Now}),
		Builder: build.NewApart(build.Limits{}, builder.Outside(f.opts.Builds)), Brake: brake,
	}
	return review.New(review.Deps{
		Hub: f.mgr.GetClient(), Live: f.mgr.GetAPIReader(),
		Open: func(ctx context.Context, source *sourcev1.GitRepository) (review.Repository, error) {
			return reader.Open(ctx, source)
		},
		Connect: func(p forge.Provider, timeout time.Duration) (review.Forge, error) {
			return forge.NewReviewer(p, forge.Options{Timeout: timeout, Egress: f.opts.Network.Egress, Tokens: tokens})
		},
		Fleet: func(ctx context.Context) (*rehearsal.Fleet, error) { return rehearsal.Read(ctx, means, now.Now()) },
	}, review.Options{Places: f.places, Secrets: f.inherited}).Register(f.mgr)
}
