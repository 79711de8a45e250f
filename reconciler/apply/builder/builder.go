// Package builder builds the objects of Kustomizations from artifacts.
//
// In go a Kustomization, the digest of an artifact in a store, and the client that reads its variables and keys; out come
// objects with the labels of their owner, or an error with the class and reason that the Kustomization
// reports. It reads ConfigMaps and Secrets of variables and keys and writes nothing. Neither keys nor what they decrypt
// are in an error.
package builder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/build/sealed"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// Reasons of our own, next to Flux's.
const (
	// ReasonEmptyBuild says that the path holds no manifests. That is an error, and never
	// taken as a wish to delete everything.
	ReasonEmptyBuild = refusals.EmptyBuild
	// ReasonPathNotFound says that the artifact has no such path.
	ReasonPathNotFound = inventory.ReasonPathNotFound
	// ReasonDuplicateObject says that a revision holds an object twice.
	ReasonDuplicateObject = "DuplicateObject"
)

// awaited is the longest pause before looking again for a ConfigMap or Secret that does not exist.
const awaited = 5 * time.Second

// refetched is the pause before looking again for an artifact that its source has to fetch anew.
const refetched = 30 * time.Second

// Input is what a build is made from.
type Input struct {
	// Kustomization says which path to build, and how.
	Kustomization *kustomizev1.Kustomization
	// Digest names the artifact in the store.
	Digest string
	// Revision names the artifact to people.
	Revision string
	// LeftOut is what the metadata of the artifact says of submodules of which it has no files; empty for none.
	LeftOut string
	// As reads variables, as the account that the Kustomization acts as.
	As client.Reader
	// Retry is the pause before a build is tried again that failed for a fault which may pass.
	Retry time.Duration
	// Keep remembers what the build read, so that Same can compare a later artifact with this one.
	Keep bool
	// Reveal is called with each value that is read from a Secret, and with each text that such a value becomes in
	// an object, so that messages can be redacted; it may be nil.
	Reveal func(text string)
	// Spare is called with texts that are to stay as they are, though values are in them: what objects are called, where
	// that is in plain text in the source; it may be nil.
	Spare func(text string)
	// Omitted is called with each part of an object that is not applied as the files have it; it may be nil.
	Omitted func(object string, o omissions.Omission)
	// Encrypted is called with each encrypted file, which is then built with stand-ins for what it holds: no key is needed.
	// If it is nil, files are decrypted as the Kustomization says.
	Encrypted func(file string)
}

// Artifacts open what sources fetched, by its digest.
type Artifacts interface {
	// Owns reports whether the source with the name owner (see artifact.Owner) fetched the artifact: else a
	// tenant could apply the artifact of another.
	Owns(owner, digest string) bool
	Open(ctx context.Context, digest string) (artifact.Files, error)
}

// Builder builds artifacts of a store. Use New.
type Builder struct {
	artifacts Artifacts
	trees     *trees
	builder   *build.Builder
	opts      Options

	mu      sync.Mutex
	built   map[client.ObjectKey]built
	waiting map[client.ObjectKey]built // what those that may not be applied yet wait with
}

// built is what the last build of a Kustomization was made from.
type built struct {
	generation int64
	digest     string
	sameAs     string // the digest of the artifact before, if this one was not built as it was found to be the same
	inputs
}

// inputs are what a build was made from: what it read of the files, and a digest of the variables.
type inputs struct {
	reads     *build.Reads
	variables string
}

// Options say how artifacts are built.
type Options struct {
	// StrictVariables refuses a variable that has neither value nor default; if false, it is replaced by nothing. The
	// annotation of a Kustomization goes before it.
	StrictVariables bool
	// Services returns what asks services that hold keys of encrypted files, with the credentials of a Secret; nil for none.
	Services func(secret map[string][]byte) sops.Service
}

// New returns a Builder that opens artifacts of a store.
func New(artifacts Artifacts, builder *build.Builder, opts Options) *Builder {
	return &Builder{artifacts: artifacts, trees: &trees{artifacts: artifacts}, builder: builder, opts: opts, built: map[client.ObjectKey]built{}, waiting: map[client.ObjectKey]built{}}
}

// outside runs builds, which happen in processes of their own, without holding a place of their tenant.
type outside struct{ build.Runner }

// Run implements build.Runner.
func (o outside) Run(ctx context.Context, job build.Job) (objects [][]byte, err error) {
	places.Outside(ctx, func(ctx context.Context) { objects, err = o.Runner.Run(ctx, job) })
	return objects, err
}

// Outside returns a runner whose builds hold no place (see package places) while they run in another process;
// nil for nil.
func Outside(runner build.Runner) build.Runner {
	if runner == nil {
		return nil
	}
	return outside{runner}
}

// Build returns the objects that the Kustomization's path holds in the artifact, with its transformations, its
// variables and the labels of their owner, in the order in which they are applied. Errors that only new content
// or a new spec can mend are of class loop.ClassStalled.
func (b *Builder) Build(ctx context.Context, in Input) ([]*unstructured.Unstructured, error) {
	tree, err := b.open(ctx, in)
	if err != nil {
		return nil, err
	}
	objects, from, err := b.opts.objects(ctx, b.builder, tree, in)
	if err == nil && in.Keep {
		b.mu.Lock()
		b.built[client.ObjectKeyFromObject(in.Kustomization)] = built{generation: in.Kustomization.Generation, digest: in.Digest, inputs: from}
		delete(b.waiting, client.ObjectKeyFromObject(in.Kustomization))
		b.mu.Unlock()
	}
	if err != nil {
		return nil, classifyBuild(in, err)
	}
	return objects, nil
}

// FromFiles does what Build does for files that no source fetched.
func FromFiles(ctx context.Context, by *build.Builder, files *build.Tree, in Input) ([]*unstructured.Unstructured, error) {
	if in.Reveal == nil { // else objects would lack the mark that text of a Secret is in them
		in.Reveal = func(string) {}
	}
	objects, _, err := Options{}.objects(ctx, by, files, in)
	return objects, err
}

// objects builds files. It also returns what the build was made from.
func (o Options) objects(ctx context.Context, by *build.Builder, files *build.Tree, in Input) ([]*unstructured.Unstructured, inputs, error) {
	in, shown := in.remembering()
	variables, secret, err := variables(ctx, in)
	if err != nil {
		return nil, inputs{}, err
	}
	decryption, err := o.decryptionOf(ctx, in)
	if err != nil {
		return nil, inputs{}, err
	}
	strict, err := o.strictFor(in.Kustomization)
	if err != nil {
		return nil, inputs{}, err
	}
	spec := specOf(in.Kustomization, variables)
	spec.StrictVariables, spec.Secrets = strict, secret
	objects, reads, err := by.BuildFrom(ctx, files, build.Input{Tenant: in.Kustomization.Namespace, Path: in.Kustomization.Spec.Path, Spec: spec, Reveal: in.Reveal, Open: decryption.opener(ctx)})
	if err == nil {
		decryption.called(objects)
		err = decryption.finish(ctx, objects)
	}
	switch {
	case ctx.Err() != nil: // what could not be opened for that says nothing of the files
		return nil, inputs{}, fmt.Errorf("build: %w", context.Cause(ctx))
	case err == nil:
		if objects, err = in.prepare(objects); err == nil {
			in.handOn(objects, *shown)
		}
	case errors.Is(err, build.ErrPath):
		err = fmt.Errorf("%w%s", err, cmp.Or(unfetched(in.LeftOut, in.Kustomization.Spec.Path), meant(files, in.Kustomization.Spec.Path)))
	}
	return objects, inputs{reads, digestOf(variables)}, decryption.clean(err)
}

// digestOf returns a digest of variables: values of Secrets are not to be kept in clear.
func digestOf(variables map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		fmt.Fprintf(hash, "%q=%q\n", name, variables[name])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// StrictVariablesAnnotation on a Kustomization says whether a variable without value and default is refused, in place of
// what holds for all.
const StrictVariablesAnnotation = "kustomize.flotilla.io/strict-variables"

// CheckAnnotations returns an error for an annotation of a Kustomization, about its build, that has no valid value.
func CheckAnnotations(ks *kustomizev1.Kustomization) error {
	_, err := Options{}.strictFor(ks)
	return err
}

// strictFor reports whether variables of a Kustomization need a value or a default.
func (o Options) strictFor(ks *kustomizev1.Kustomization) (bool, error) {
	switch text, set := ks.Annotations[StrictVariablesAnnotation]; {
	case !set:
		return o.StrictVariables, nil
	case text == "true", text == "false":
		return text == "true", nil
	default:
		return false, loop.Stalled(kustomizations.ReasonInvalidAnnotation, fmt.Errorf(`the annotation %s is %q: make it "true" or "false"`, StrictVariablesAnnotation, text))
	}
}

// Same reports whether the artifact of in holds the same as the artifact with the digest from, in all that
// the Kustomization reads of it, so that it need not be built. It is false if from is neither the artifact
// that was last built with Input.Keep nor one that was found to be the same, and if variables have other values by now, or
// cannot be read; without Input.As, these are not compared.
func (b *Builder) Same(ctx context.Context, in Input, from string) (bool, error) {
	b.mu.Lock()
	last := b.built[client.ObjectKeyFromObject(in.Kustomization)]
	b.mu.Unlock()
	switch {
	case from == "": // nothing is applied: what is built is new
		return false, nil
	case last.digest != from && last.sameAs != from, last.generation != in.Kustomization.Generation, last.reads == nil:
		return false, nil
	case last.digest == in.Digest && last.sameAs == from:
		return true, nil
	}
	tree, err := b.open(ctx, in)
	if err != nil || !last.reads.Same(tree) || !last.hasVariables(ctx, in) {
		return false, err
	}
	last.digest, last.sameAs = in.Digest, from
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built[client.ObjectKeyFromObject(in.Kustomization)] = last
	return true, nil
}

// hasVariables reports whether a build was made with the variables as they are now.
func (f inputs) hasVariables(ctx context.Context, in Input) bool {
	if post := in.Kustomization.Spec.PostBuild; in.As == nil || post == nil || len(post.SubstituteFrom) == 0 {
		return true
	}
	now, _, err := variables(ctx, in)
	return err == nil && digestOf(now) == f.variables
}

// Forget drops what is kept of a Kustomization that is gone.
func (b *Builder) Forget(key client.ObjectKey) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.built, key)
	delete(b.waiting, key)
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

// buildReasons maps the errors of a build to the reasons of conditions, which stay the same across versions.
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
	{sealed.ErrSealed, meta.BuildFailedReason},
	{sealed.ErrNoKey, meta.BuildFailedReason},
}

// classifyBuild makes an error stalled that the same files would cause again. Where variables come from
// ConfigMaps or Secrets, most errors may pass when these change, so they are tried again, and so may a missing key.
func classifyBuild(in Input, err error) error {
	varies := errors.Is(err, sealed.ErrNoKey) || in.Kustomization.Spec.PostBuild != nil && len(in.Kustomization.Spec.PostBuild.SubstituteFrom) > 0
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

// variables returns the values of variables by name. A later ConfigMap or Secret overrides an earlier one, and
// the Kustomization's own values override both. secret are the names of the variables whose values come from
// Secrets, sorted.
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
	// What another Kustomization put text of a Secret into hands it on.
	handsOn := ks.Annotations[gitopsv1alpha1.HoldsSecretsAnnotation] != ""
	for name, value := range ks.Spec.PostBuild.Substitute {
		isSecret[name] = handsOn
		if handsOn && in.Reveal != nil {
			in.Reveal(value)
		}
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
