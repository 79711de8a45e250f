package inventory

import (
	"cmp"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source names a source, which is what Kustomizations apply. Two of different kinds may have the same name.
type Source struct {
	// Kind is that of the object, such as GitRepository.
	Kind string
	client.ObjectKey
}

// String returns the source for messages, such as "GitRepository shop/app".
func (s Source) String() string { return s.Kind + " " + s.ObjectKey.String() }

// SourceOf returns the source of a Kustomization.
func SourceOf(ks *kustomizev1.Kustomization) Source {
	ref := ks.Spec.SourceRef
	return Source{ref.Kind, client.ObjectKey{Namespace: cmp.Or(ref.Namespace, ks.Namespace), Name: ref.Name}}
}

// GitRepository returns the source of that kind and name.
func GitRepository(key client.ObjectKey) Source { return Source{sourcev1.GitRepositoryKind, key} }
