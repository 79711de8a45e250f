package kustomizations

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// Unsupported returns the first field that asks for something unsupported, and what to do instead; empty for none.
func Unsupported(spec kustomizev1.KustomizationSpec) (field, instead string) {
	switch {
	case spec.KubeConfig != nil:
		return "spec.kubeConfig", "propagate to member clusters with a PropagationPolicy"
	case spec.Decryption != nil:
		return "spec.decryption", "commit no encrypted manifests, or decrypt them before they are committed"
	case spec.SourceRef.Kind != sourcev1.GitRepositoryKind:
		return "spec.sourceRef.kind " + spec.SourceRef.Kind, "use a GitRepository"
	default:
		return "", ""
	}
}
