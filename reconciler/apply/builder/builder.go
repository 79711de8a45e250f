// Package builder turns artifacts into what Kustomizations want of them.
//
// In go a Kustomization, the address of an artifact in a store, and who reads its variables; out come
// objects with the labels of their owner, or an error of the class and reason that it has for the
// Kustomization. It reads ConfigMaps and Secrets of variables and writes nothing.
package builder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/policies/omissions"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Reasons of our own, next to Flux's.
const (
	// ReasonEmptyBuild says that the path holds no manifests. It never counts
	// as a wish to delete everything.
	ReasonEmptyBuild = "EmptyBuild"
	// ReasonPathNotFound says that the artifact has no such path.
	ReasonPathNotFound = inventory.ReasonPathNotFound
	// ReasonDuplicateObject says that a revision holds an object twice.
	ReasonDuplicateObject = "DuplicateObject"
)

// awaited is when to look again for a ConfigMap or Secret that is not there.
const awaited = 5 * time.Second

// refetched is when to look again for an artifact that its source fetches anew.
const refetched = 30 * time.Second

// Input is what a build is made from.
type Input struct {
	// Kustomization says which path to build, and how.
	Kustomization *kustomizev1.Kustomization
	// Digest addresses the artifact in the store.
	Digest string
	// Revision names the artifact to people.
	Revision string
	// As reads variables, as the account that the Kustomization acts as.
	As client.Reader
	// Retry is how soon a fault that may pass is tried again.
	Retry time.Duration
	// Keep has a later artifact be compared with this one, by Same.
	Keep bool
	// Reveal is called with each value that is read from a Secret, and with each text that one comes out as in
	// an object; nil: nobody wants to know.
	Reveal func(text string)
	// Omitted is called with what of an object is not applied as files have it; nil: nobody wants to know.
	Omitted func(object string, o omissions.Omission)
}

// Artifacts open what sources fetched, by its digest.
type Artifacts interface {
	// Owns reports whether it was fetched by the source of that name; see artifact.Owner.
	Owns(owner, digest string) bool
	Open(ctx context.Context, digest string) (artifact.Files, error)
}

// Builder builds artifacts of a store. Use New.
type Builder struct {
	artifacts Artifacts
	trees     *trees
	builder   *build.Builder
	opts      Options

	mu    sync.Mutex
	built map[client.ObjectKey]built
}

// built is what the last build of a Kustomization was made from.
type built struct {
	generation int64
	digest     string
	sameAs     string // the digest of the one that was built, if this one was found to be the same
	reads      *build.Reads
}

// Options say how artifacts are built.
type Options struct {
	// StrictVariables refuses a variable that has neither value nor default; else it is nothing.
	StrictVariables bool
}

// New returns a Builder that opens artifacts of a store.
func New(artifacts Artifacts, builder *build.Builder, opts Options) *Builder {
	return &Builder{artifacts: artifacts, trees: &trees{artifacts: artifacts}, builder: builder, opts: opts, built: map[client.ObjectKey]built{}}
}

// outside runs builds of their own processes in no place of their tenant's.
type outside struct{ build.Runner }

// Run implements build.Runner.
func (o outside) Run(ctx context.Context, job build.Job) (objects [][]byte, err error) {
	places.Outside(ctx, func(ctx context.Context) { objects, err = o.Runner.Run(ctx, job) })
	return objects, err
}

// Outside returns a runner whose builds take no place while they run apart; nil of
// nil.
func Outside(runner build.Runner) build.Runner {
	if runner == nil {
		return nil
	}
	return outside{runner}
}

// Build returns the objects that the Kustomization's path holds in the artifact, with its
// transformations, its variables and the labels of their owner, in the order in which they are applied. Errors that only new content or a new
// spec can mend are of class loop.ClassStalled.
func (b *Builder) Build(ctx context.Context, in Input) ([]*unstructured.Unstructured, error) {
	tree, err := b.open(ctx, in)
	if err != nil {
		return nil, err
	}
	objects, reads, err := b.opts.objects(ctx, b.builder, tree, in)
	if err == nil && in.Keep {
		b.mu.Lock()
		b.built[client.ObjectKeyFromObject(in.Kustomization)] = built{generation: in.Kustomization.Generation, digest: in.Digest, reads: reads}
		b.mu.Unlock()
	}
	if err != nil {
		return nil, classifyBuild(in, err)
	}
	return objects, nil
}

// FromFiles returns what Build does, of files that no source fetched.
func FromFiles(ctx context.Context, by *build.Builder, files *build.Tree, in Input) ([]*unstructured.Unstructured, error) {
	objects, _, err := Options{}.objects(ctx, by, files, in)
	return objects, err
}

// objects builds files, and says what was looked at.
func (o Options) objects(ctx context.Context, by *build.Builder, files *build.Tree, in Input) ([]*unstructured.Unstructured, *build.Reads, error) {
	variables, secret, err := variables(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	spec := specOf(in.Kustomization, variables)
	spec.StrictVariables, spec.Secrets = o.StrictVariables, secret
	objects, reads, err := by.BuildFrom(ctx, files, build.Input{Path: in.Kustomization.Spec.Path, Spec: spec, Reveal: in.Reveal})
	switch {
	case err == nil:
		objects, err = in.prepare(objects)
	case errors.Is(err, build.ErrPath):
		err = fmt.Errorf("%w%s", err, meant(files, in.Kustomization.Spec.Path))
	}
	return objects, reads, err
}

// Same reports whether an artifact holds, of what the Kustomization reads, the same as the one that was
// built and kept, or found to be the same, last, if that is the one of the digest from, or was found to be
// the same as that. Its variables may be other ones.
func (b *Builder) Same(ctx context.Context, in Input, from string) (bool, error) {
	b.mu.Lock()
	last := b.built[client.ObjectKeyFromObject(in.Kustomization)]
	b.mu.Unlock()
	switch {
	case last.digest != from && last.sameAs != from, last.generation != in.Kustomization.Generation, last.reads == nil:
		return false, nil
	case last.digest == in.Digest && last.sameAs == from:
		return true, nil
	}
	tree, err := b.open(ctx, in)
	if err != nil || !last.reads.Same(tree) {
		return false, err
	}
	last.digest, last.sameAs = in.Digest, from
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built[client.ObjectKeyFromObject(in.Kustomization)] = last
	return true, nil
}

// Forget drops what is kept of a Kustomization that is gone.
func (b *Builder) Forget(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.built, key)
}

func (b *Builder) open(ctx context.Context, in Input) (*build.Tree, error) {
	source := inventory.SourceOf(in.Kustomization)
	if !b.artifacts.Owns(artifact.Owner(in.Kustomization.Spec.SourceRef.Kind, source.Namespace, source.Name), in.Digest) {
		return nil, loop.Waiting(meta.ArtifactFailedReason, refetched, fmt.Errorf("the artifact %s was not fetched by its source: waiting for that to fetch it anew", in.Digest))
	}
	tree, err := b.trees.open(ctx, in.Digest)
	if errors.Is(err, artifact.ErrNotFound) || errors.Is(err, artifact.ErrCorrupt) {
		return nil, loop.Waiting(meta.ArtifactFailedReason, refetched, fmt.Errorf("%w: waiting for its source to fetch it anew", err))
	}
	if err != nil {
		return nil, loop.Waiting(meta.ArtifactFailedReason, in.Retry, err)
	}
	return tree, nil
}

// buildReasons give what a build may come to a stable reason.
var buildReasons = []struct {
	is     error
	reason string
}{
	{build.ErrPath, ReasonPathNotFound},
	{build.ErrEmpty, ReasonEmptyBuild},
	{build.ErrDuplicate, ReasonDuplicateObject},
	{build.ErrTooLarge, applier.ReasonObjectTooLarge},
	{build.ErrInvalid, meta.BuildFailedReason},
	{build.ErrRefused, meta.BuildFailedReason},
	{build.ErrKustomize, meta.BuildFailedReason},
	{build.ErrSubstitute, meta.BuildFailedReason},
}

// classifyBuild stalls what the same files would bring about again, with the same variables: those of
// others may become other ones.
func classifyBuild(in Input, err error) error {
	varies := in.Kustomization.Spec.PostBuild != nil && len(in.Kustomization.Spec.PostBuild.SubstituteFrom) > 0
	for _, known := range buildReasons {
		switch {
		case !errors.Is(err, known.is):
		case varies && known.reason != ReasonPathNotFound && known.reason != ReasonEmptyBuild:
			return loop.Waiting(known.reason, in.Retry, err)
		default:
			return loop.Stalled(known.reason, err)
		}
	}
	return err
}

func specOf(ks *kustomizev1.Kustomization, variables map[string]string) build.Spec {
	spec := build.Spec{
		TargetNamespace:         ks.Spec.TargetNamespace,
		NamePrefix:              ks.Spec.NamePrefix,
		NameSuffix:              ks.Spec.NameSuffix,
		Patches:                 ks.Spec.Patches,
		Images:                  ks.Spec.Images,
		Components:              ks.Spec.Components,
		IgnoreMissingComponents: ks.Spec.IgnoreMissingComponents,
		Labels:                  map[string]string{},
		Variables:               variables,
		SecretAnnotation:        build.SecretAnnotation{Key: gitopsv1alpha1.HoldsSecretsAnnotation, InName: gitopsv1alpha1.HoldsInName, InFields: gitopsv1alpha1.HoldsInFields},
		AlwaysSubstitute:        ks.Spec.PostBuild != nil && ks.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways,
	}
	for _, option := range ks.Spec.BuildMetadata {
		spec.BuildMetadata = append(spec.BuildMetadata, string(option))
	}
	if m := ks.Spec.CommonMetadata; m != nil {
		maps.Copy(spec.Labels, m.Labels)
		spec.Annotations = m.Annotations
	}
	maps.Copy(spec.Labels, inventory.OwnerLabels(client.ObjectKeyFromObject(ks)))
	return spec
}

// variables returns what is put in for names: what ConfigMaps and Secrets say,
// later ones before earlier ones, and the Kustomization's own before all. Secret are the names of those whose
// values are from Secrets.
func variables(ctx context.Context, in Input) (out map[string]string, secret []string, err error) {
	ks := in.Kustomization
	if ks.Spec.PostBuild == nil {
		return nil, nil, nil
	}
	out = map[string]string{}
	isSecret := map[string]bool{}
	for _, ref := range ks.Spec.PostBuild.SubstituteFrom {
		values, err := valuesOf(ctx, in.As, client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}, ref.Kind)
		if apierrors.IsNotFound(err) && ref.Optional {
			continue
		}
		if apierrors.IsNotFound(err) {
			return nil, nil, loop.Waiting(meta.BuildFailedReason, min(in.Retry, awaited), fmt.Errorf("spec.postBuild.substituteFrom: the %s %s does not exist: create it, or mark it optional", ref.Kind, ref.Name))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the %s %s: %w", ref.Kind, ref.Name, err)
		}
		if ref.Kind != "ConfigMap" && in.Reveal != nil {
			for _, value := range values {
				in.Reveal(value)
			}
		}
		maps.Copy(out, values)
		for name := range values {
			isSecret[name] = ref.Kind != "ConfigMap"
		}
	}
	maps.Copy(out, ks.Spec.PostBuild.Substitute)
	for name := range ks.Spec.PostBuild.Substitute {
		isSecret[name] = false
	}
	maps.DeleteFunc(isSecret, func(_ string, secret bool) bool { return !secret })
	return out, slices.Sorted(maps.Keys(isSecret)), nil
}

func valuesOf(ctx context.Context, as client.Reader, key client.ObjectKey, kind string) (map[string]string, error) {
	if kind == "ConfigMap" {
		var config corev1.ConfigMap
		err := as.Get(ctx, key, &config)
		return config.Data, err
	}
	var secret corev1.Secret
	if err := as.Get(ctx, key, &secret); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(secret.Data))
	for name, value := range secret.Data {
		out[name] = strings.TrimSuffix(string(value), "\n")
	}
	return out, nil
}
