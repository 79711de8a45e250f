package kustomizations

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// sopsProvider is the provider of decryption.
const sopsProvider = "sops"

// longestPath is how many bytes spec.path may have: those of the longest path of most file systems. What shows it shows it as often as
// there are Kustomizations.
const longestPath = 4096

// Unsupported returns the first field that asks for something unsupported, and what to do instead; empty for none.
func Unsupported(spec kustomizev1.KustomizationSpec) (field, instead string) {
	switch {
	case len(spec.Path) > longestPath:
		return fmt.Sprintf("spec.path of more than %d bytes", longestPath), "name a folder by a shorter path"
	case spec.KubeConfig != nil && spec.KubeConfig.ConfigMapRef != nil:
		return "spec.kubeConfig.configMapRef", "it is for identities of clouds: name a Secret with a kubeconfig in spec.kubeConfig.secretRef, or join the cluster to the fleet, and propagate to it with a PropagationPolicy"
	case spec.Decryption != nil && spec.Decryption.Provider != sopsProvider:
		return "spec.decryption.provider " + spec.Decryption.Provider, "use " + sopsProvider
	case spec.Decryption != nil && spec.Decryption.ServiceAccountName != "":
		return "spec.decryption.serviceAccountName", "it is for keys of clouds: name a Secret with age or OpenPGP keys in spec.decryption.secretRef"
	}
	if _, followed := origins.KindOf(spec.SourceRef.Kind); !followed {
		return "spec.sourceRef.kind " + spec.SourceRef.Kind, "use a " + origins.Names()
	}
	return "", ""
}
