package kustomizations

import (
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Unsupported returns the first field that asks for something unsupported, and what to do instead; empty for none.
func Unsupported(spec kustomizev1.KustomizationSpec) (field, instead string) {
	switch {
	case spec.KubeConfig != nil:
		return "spec.kubeConfig", "propagate to member clusters with a PropagationPolicy"
	case spec.Decryption != nil:
		return "spec.decryption", "commit no encrypted manifests, or decrypt them before they are committed"
	}
	if _, followed := origins.KindOf(spec.SourceRef.Kind); !followed {
		return "spec.sourceRef.kind " + spec.SourceRef.Kind, "use a " + origins.Names()
	}
	return "", ""
}
