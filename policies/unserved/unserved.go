// Package unserved says which fields of Flux's sources the control plane refuses rather than ignores, which of their values mean
// nothing, and what to do instead.
//
// In goes the spec of a source; out come the field and a sentence about it, which the condition of the source has and which
// a check of files has before. It reads nothing else, and decides nothing about what is served.
package unserved

import (
	"fmt"
	"regexp"

	"github.com/Masterminds/semver/v3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// ofGit are what Git servers of clouds take besides the credentials of the cloud.
var ofGit = map[string]string{
	sourcev1.GitProviderAWS:   "the username and password of the user's Git credentials",
	sourcev1.GitProviderAzure: "username, and a personal access token as password,",
}

// keysOf are the credentials of a cloud that a Secret has.
var keysOf = map[string]string{
	sourcev1.AmazonOCIProvider: "accesskey and secretkey",
	sourcev1.GoogleOCIProvider: "serviceaccount",
	sourcev1.AzureOCIProvider:  "tenantId, clientId and clientSecret",
}

// GitRepository returns the first field that is not served, and a sentence that begins with it; empty for none. clouds says that what
// serves is built for clouds.
func GitRepository(spec sourcev1.GitRepositorySpec, clouds bool) (field, why string) {
	instead, ofCloud := ofGit[spec.Provider]
	switch {
	case ofCloud && !clouds:
		return "spec.provider", fmt.Sprintf("spec.provider %s takes a flotillad that was built with -tags clouds: build it with that, or remove it, and name a Secret with %s in spec.secretRef", spec.Provider, instead)
	case ofCloud && spec.SecretRef == nil:
		return "spec.provider", fmt.Sprintf("spec.provider %s is served with credentials alone, as no identity of a machine is used: name a Secret with %s in spec.secretRef", spec.Provider, keysOf[spec.Provider])
	case spec.ServiceAccountName != "":
		return "spec.serviceAccountName", "spec.serviceAccountName is not supported yet, as it is for identities of clouds: remove it, and name a Secret with credentials in spec.secretRef"
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

// commitHash is a commit as spec.ref.commit names one.
var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Reference returns the field of a GitRepository's reference that no server can have anything for, and a sentence that begins with it;
// empty for none. What another field is stronger than is not read.
func Reference(ref *sourcev1.GitRepositoryRef) (field, why string) {
	switch {
	case ref == nil:
		return "", ""
	case ref.Commit != "" && !commitHash.MatchString(ref.Commit):
		return "spec.ref.commit", fmt.Sprintf("spec.ref.commit %q must be 40 lower-case hex digits", ref.Commit)
	case ref.Commit == "" && ref.Name == "" && ref.SemVer != "" && Range(ref.SemVer) != "":
		return "spec.ref.semver", Range(ref.SemVer)
	default:
		return "", ""
	}
}

// Range returns a sentence about spec.ref.semver if that is no range of versions; empty if it is one.
func Range(text string) string {
	if _, err := semver.NewConstraint(text); err == nil {
		return ""
	}
	return fmt.Sprintf("spec.ref.semver %q is no range of versions, such as 1.2.x or >=1.2.0 <2.0.0", text)
}

// OCIRepository returns the first field that is not served, and a sentence that begins with it; empty for none. A login in a Secret
// counts whatever the provider. clouds says that what serves is built for clouds.
func OCIRepository(spec sourcev1.OCIRepositorySpec, clouds bool) (field, why string) {
	keys, ofCloud := keysOf[spec.Provider]
	switch {
	case !ofCloud || spec.SecretRef != nil:
		return "", ""
	case !clouds:
		return "spec.provider", fmt.Sprintf("spec.provider %s is served with a login alone, as no identity of a machine is used: name a Secret that has one for the registry in spec.secretRef", spec.Provider)
	default:
		return "spec.provider", fmt.Sprintf("spec.provider %s is served with credentials alone, as no identity of a machine is used: name a Secret with %s, or with a login for the registry, in spec.secretRef", spec.Provider, keys)
	}
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
