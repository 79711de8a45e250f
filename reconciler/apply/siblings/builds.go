package siblings

import (
	"context"
	"errors"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/impersonation"
	"github.com/flotilla-io/flotilla/reconciler/apply/intervals"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Builder turns an artifact into objects.
type Builder interface {
	Build(ctx context.Context, in builder.Input) ([]*unstructured.Unstructured, error)
	// Same reports whether an artifact holds the same files as the one with the digest from; false where that is not known.
	Same(ctx context.Context, in builder.Input, from string) (bool, error)
}

// Builds build what Kustomizations want.
type Builds struct {
	Builder Builder
	Actors  *impersonation.Actors
	Mapper  apimeta.RESTMapper
}

// Wants is a Build.
func (b Builds) Wants(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (Wants, error) {
	as, err := b.Actors.Of(ks)
	if err != nil {
		return Wants{}, err
	}
	if err := as.Check(); err != nil {
		return Wants{}, err
	}
	objects, err := b.Builder.Build(ctx, builder.Input{Kustomization: ks, Digest: at.Digest, Revision: at.Revision, As: as, Retry: intervals.Retry(ks)})
	if err != nil {
		return Wants{}, err
	}
	if len(objects) == 0 {
		return Wants{}, errors.New("it holds no manifests")
	}
	for _, obj := range objects {
		gvk := obj.GroupVersionKind()
		if mapping, err := b.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil && mapping.Scope.Name() == apimeta.RESTScopeNameRoot {
			obj.SetNamespace("")
		}
	}
	entries, err := inventory.Of(objects)
	return WantsOf(entries, objects), err
}

// Differs is a switchover.Differs.
func (b Builds) Differs(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (bool, error) {
	same, err := b.Builder.Same(ctx, builder.Input{Kustomization: ks, Digest: at.Digest, Revision: at.Revision, Retry: intervals.Retry(ks)}, lastgood.In(ks.Status).Artifact)
	return !same, err
}

// EligibleBy returns the Eligible of what rules allow: one of another namespace may take
// over only if it acts as the control plane, or its tenant could keep others' objects. One with spec.kubeConfig
// takes nothing over that is here.
func EligibleBy(rules tenancy.Rules) Eligible {
	return func(ks *kustomizev1.Kustomization, namespace string) bool {
		foreign := inventory.SourceOf(ks).Namespace != ks.Namespace && !rules.AllowCrossNamespace
		if unsupported, _ := kustomizations.Unsupported(ks.Spec); unsupported != "" || foreign || ks.Spec.KubeConfig != nil {
			return false
		}
		return ks.Namespace == namespace || rules.Of(impersonation.Subject(ks)).Privileged()
	}
}
