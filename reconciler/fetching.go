package reconciler

import (
	"context"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/bucket"
	"github.com/flotilla-io/flotilla/sources/clouds"
	"github.com/flotilla-io/flotilla/sources/download"
	"github.com/flotilla-io/flotilla/sources/externalartifact"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
	"github.com/flotilla-io/flotilla/sources/repository"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// inUse returns a function that returns to a loop of sources of a kind which of their artifacts are still applied.
func (f *fleet) inUse(kind string) func(context.Context, client.ObjectKey) ([]artifact.Used, error) {
	return lastgood.InUse(f.mgr.GetClient(), f.opts.Revisions.Tenancy, kind)
}

func registerRepository(_ context.Context, f *fleet) error {
	return repository.New(f.inherited.Client(f.mgr.GetClient()), f.opts.Artifacts, f.events, repository.Options{
		Git: git.Options{Egress: f.opts.Network.Egress}, Clouds: clouds.Built, InUse: f.inUse(sourcev1.GitRepositoryKind), Clean: f.inherited.Clean, Namespaces: f.opts.Revisions.Tenancy.In, Places: f.places, Metrics: f.opts.Metrics,
	}).Register(f.mgr)
}

func registerOCIRepository(_ context.Context, f *fleet) error {
	return ocirepository.New(f.inherited.Client(f.mgr.GetClient()), f.opts.Artifacts, f.events, ocirepository.Options{
		Registries: oci.Options{Egress: f.opts.Network.Egress}, Clouds: clouds.Built, InUse: f.inUse(sourcev1.OCIRepositoryKind), Clean: f.inherited.Clean, Namespaces: f.opts.Revisions.Tenancy.In, Places: f.places, Metrics: f.opts.Metrics,
	}).Register(f.mgr)
}

func registerBucket(_ context.Context, f *fleet) error {
	return bucket.New(f.inherited.Client(f.mgr.GetClient()), f.opts.Artifacts, f.events, bucket.Options{
		Servers: s3.Options{Egress: f.opts.Network.Egress}, Clouds: clouds.Built, InUse: f.inUse(sourcev1.BucketKind), Clean: f.inherited.Clean, Namespaces: f.opts.Revisions.Tenancy.In, Places: f.places, Metrics: f.opts.Metrics,
	}).Register(f.mgr)
}

func registerExternalArtifact(_ context.Context, f *fleet) error {
	return externalartifact.New(f.inherited.Client(f.mgr.GetClient()), f.opts.Artifacts, f.events, externalartifact.Options{
		Downloads: download.Options{Egress: f.opts.Network.Egress}, InUse: f.inUse(sourcev1.ExternalArtifactKind), Clean: f.inherited.Clean, Namespaces: f.opts.Revisions.Tenancy.In, Places: f.places, Metrics: f.opts.Metrics,
	}).Register(f.mgr)
}
