// Package unserved says which fields of Flux's sources the control plane refuses rather than ignores, and what to do instead.
//
// In goes the spec of a source; out come the field and a sentence about it, which the condition of the source has and which
// a check of files has before. It reads nothing else, and decides nothing about what is served.
package unserved

import (
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// GitRepository returns the first field that is not served, and a sentence that begins with it; empty for none.
func GitRepository(spec sourcev1.GitRepositorySpec) (field, why string) {
	switch {
	case spec.Provider == sourcev1.GitProviderAzure, spec.Provider == sourcev1.GitProviderAWS:
		return "spec.provider", fmt.Sprintf("spec.provider %s is not supported yet, as it needs the cloud's own libraries: remove it, and name a Secret with username and password, or a token as bearerToken, in spec.secretRef", spec.Provider)
	case spec.ServiceAccountName != "":
		return "spec.serviceAccountName", "spec.serviceAccountName is not supported yet, as it is for providers that need a cloud's own libraries: remove it, and name a Secret with credentials in spec.secretRef"
	default:
		return "", ""
	}
}

// AppWithoutSecret returns what is wrong with a GitRepository whose provider is github and that names no Secret; empty for others.
func AppWithoutSecret(spec sourcev1.GitRepositorySpec) string {
	if spec.Provider != sourcev1.GitProviderGitHub || spec.SecretRef != nil {
		return ""
	}
	return "spec.provider github needs the keys of a GitHub App: name a Secret with them in spec.secretRef"
}

// Provider reports whether the provider of an OCIRepository is not served, and what to do instead.
func Provider(spec sourcev1.OCIRepositorySpec) (unserved bool, instead string) {
	return spec.Provider != "" && spec.Provider != sourcev1.GenericOCIProvider, "use a login of the registry in spec.secretRef"
}
