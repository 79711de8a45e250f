package inventory

import (
	"cmp"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SourceOf returns the name of a Kustomization's source.
func SourceOf(ks *kustomizev1.Kustomization) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(ks.Spec.SourceRef.Namespace, ks.Namespace), Name: ks.Spec.SourceRef.Name}
}
