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

// Provider reports whether the provider of an OCIRepository is not served, and what to do instead. A login in a Secret counts in any case.
func Provider(spec sourcev1.OCIRepositorySpec) (unserved bool, instead string) {
	return spec.Provider != "" && spec.Provider != sourcev1.GenericOCIProvider && spec.SecretRef == nil, "use a login of the registry in spec.secretRef"
}

// byS3 says how buckets of a cloud are served by the interface of S3; those of Azure have none.
var byS3 = map[string]string{
	sourcev1.BucketProviderAmazon: "name a Secret with accesskey and secretkey in spec.secretRef, with endpoint s3.<region>.amazonaws.com, and the region",
	sourcev1.BucketProviderGoogle: "set it to generic, with endpoint storage.googleapis.com, and a Secret with an HMAC key as accesskey and secretkey in spec.secretRef",
	sourcev1.BucketProviderAzure:  "copy the files to a bucket that is served by the interface of S3, or push them to a registry and use an OCIRepository",
}

// Bucket returns the first field that is not served, and a sentence that begins with it; empty for none. clouds says that what serves
// is built for clouds.
func Bucket(spec sourcev1.BucketSpec, clouds bool) (field, why string) {
	instead, ofCloud := byS3[spec.Provider]
	amazon := spec.Provider == sourcev1.BucketProviderAmazon
	switch {
	case ofCloud && !amazon && !clouds:
		return "spec.provider", fmt.Sprintf("spec.provider %s takes a flotillad that was built with -tags clouds: build it with that, or %s", spec.Provider, instead)
	case ofCloud && spec.SecretRef == nil && amazon:
		return "spec.provider", fmt.Sprintf("spec.provider %s is served with keys alone, as no identity of a machine is used: %s", spec.Provider, instead)
	case ofCloud && spec.SecretRef == nil:
		return "spec.provider", fmt.Sprintf("spec.provider %s is served with credentials alone, as no identity of a machine is used: name a Secret with them in spec.secretRef", spec.Provider)
	case spec.ServiceAccountName != "":
		return "spec.serviceAccountName", "spec.serviceAccountName is not supported yet, as it is for identities of clouds: remove it, and name a Secret with credentials in spec.secretRef"
	case spec.STS != nil && spec.STS.Provider == sourcev1.STSProviderAmazon:
		return "spec.sts.provider", "spec.sts.provider aws is not supported yet, as it is for identities of clouds: remove spec.sts, and name a Secret with accesskey and secretkey in spec.secretRef"
	default:
		return "", ""
	}
}
