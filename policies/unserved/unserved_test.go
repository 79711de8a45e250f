package unserved_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/unserved"
)

// TestGitRepository: the sentence begins with the field, as a check of files puts that first.
func TestGitRepository(t *testing.T) {
	secret := &meta.LocalObjectReference{Name: "keys"}
	for name, tc := range map[string]struct {
		spec   sourcev1.GitRepositorySpec
		clouds bool
		want   string
		app    string
	}{
		"nothing is asked for":            {},
		"Amazon":                          {spec: sourcev1.GitRepositorySpec{Provider: "aws", SecretRef: secret}, want: "spec.provider aws takes a flotillad that was built with -tags clouds: build it with that, or remove it, and name a Secret with the username and password of the user's Git credentials in spec.secretRef"},
		"Amazon, in a build for clouds":   {spec: sourcev1.GitRepositorySpec{Provider: "aws", SecretRef: secret}, clouds: true},
		"Amazon, by an identity":          {spec: sourcev1.GitRepositorySpec{Provider: "aws"}, clouds: true, want: "spec.provider aws is served with credentials alone, as no identity of a machine is used: name a Secret with accesskey and secretkey in spec.secretRef"},
		"Azure":                           {spec: sourcev1.GitRepositorySpec{Provider: "azure", SecretRef: secret}, want: "spec.provider azure takes a flotillad that was built with -tags clouds: build it with that, or remove it, and name a Secret with username, and a personal access token as password, in spec.secretRef"},
		"Azure, in a build for clouds":    {spec: sourcev1.GitRepositorySpec{Provider: "azure", SecretRef: secret}, clouds: true},
		"Azure, by an identity":           {spec: sourcev1.GitRepositorySpec{Provider: "azure"}, clouds: true, want: "spec.provider azure is served with credentials alone, as no identity of a machine is used: name a Secret with tenantId, clientId and clientSecret in spec.secretRef"},
		"an identity of a ServiceAccount": {spec: sourcev1.GitRepositorySpec{ServiceAccountName: "a"}, clouds: true, want: "spec.serviceAccountName is not supported yet, as it is for identities of clouds: remove it, and name a Secret with credentials in spec.secretRef"},
		"a GitHub App":                    {spec: sourcev1.GitRepositorySpec{Provider: "github", SecretRef: secret}},
		"a GitHub App without its keys":   {spec: sourcev1.GitRepositorySpec{Provider: "github"}, app: "spec.provider github needs the keys of a GitHub App: name a Secret with them in spec.secretRef"},
	} {
		field, why := unserved.GitRepository(tc.spec, tc.clouds)
		if why != tc.want || !strings.HasPrefix(why, field) || (field == "") != (why == "") {
			t.Errorf("%s: %q, %q, want %q", name, field, why, tc.want)
		}
		if got := unserved.AppWithoutSecret(tc.spec); got != tc.app {
			t.Errorf("%s: %q, want %q", name, got, tc.app)
		}
	}
}

// TestBucket: keys of Amazon are those of S3, and the others' are for a build for clouds.
func TestBucket(t *testing.T) {
	secret := &meta.LocalObjectReference{Name: "keys"}
	for name, tc := range map[string]struct {
		spec   sourcev1.BucketSpec
		clouds bool
		want   string
	}{
		"any server of S3":                {},
		"Amazon, with keys":               {spec: sourcev1.BucketSpec{Provider: "aws", SecretRef: secret}},
		"Amazon, by an identity":          {spec: sourcev1.BucketSpec{Provider: "aws"}, clouds: true, want: "spec.provider aws is served with keys alone, as no identity of a machine is used: name a Secret with accesskey and secretkey in spec.secretRef, with endpoint s3.<region>.amazonaws.com, and the region"},
		"Google":                          {spec: sourcev1.BucketSpec{Provider: "gcp", SecretRef: secret}, want: "spec.provider gcp takes a flotillad that was built with -tags clouds: build it with that, or set it to generic, with endpoint storage.googleapis.com, and a Secret with an HMAC key as accesskey and secretkey in spec.secretRef"},
		"Google, in a build for clouds":   {spec: sourcev1.BucketSpec{Provider: "gcp", SecretRef: secret}, clouds: true},
		"Azure":                           {spec: sourcev1.BucketSpec{Provider: "azure", SecretRef: secret}, want: "spec.provider azure takes a flotillad that was built with -tags clouds: build it with that, or copy the files to a bucket that is served by the interface of S3, or push them to a registry and use an OCIRepository"},
		"Azure, in a build for clouds":    {spec: sourcev1.BucketSpec{Provider: "azure", SecretRef: secret}, clouds: true},
		"Azure, by an identity":           {spec: sourcev1.BucketSpec{Provider: "azure"}, clouds: true, want: "spec.provider azure is served with credentials alone, as no identity of a machine is used: name a Secret with them in spec.secretRef"},
		"an identity of a ServiceAccount": {spec: sourcev1.BucketSpec{Provider: "gcp", SecretRef: secret, ServiceAccountName: "a"}, clouds: true, want: "spec.serviceAccountName is not supported yet, as it is for identities of clouds: remove it, and name a Secret with credentials in spec.secretRef"},
	} {
		if _, got := unserved.Bucket(tc.spec, tc.clouds); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestOCIRepository: what a Secret has counts, whatever the provider, and identities of machines never do.
func TestOCIRepository(t *testing.T) {
	secret := &meta.LocalObjectReference{Name: "login"}
	for name, tc := range map[string]struct {
		spec   sourcev1.OCIRepositorySpec
		clouds bool
		want   string
	}{
		"any registry":                   {spec: sourcev1.OCIRepositorySpec{Provider: "generic"}},
		"a cloud, with a Secret":         {spec: sourcev1.OCIRepositorySpec{Provider: "aws", SecretRef: secret}},
		"Amazon, by an identity":         {spec: sourcev1.OCIRepositorySpec{Provider: "aws"}, want: "spec.provider aws is served with a login alone, as no identity of a machine is used: name a Secret that has one for the registry in spec.secretRef"},
		"the same in a build for clouds": {spec: sourcev1.OCIRepositorySpec{Provider: "azure"}, clouds: true, want: "spec.provider azure is served with credentials alone, as no identity of a machine is used: name a Secret with tenantId, clientId and clientSecret, or with a login for the registry, in spec.secretRef"},
	} {
		field, why := unserved.OCIRepository(tc.spec, tc.clouds)
		if why != tc.want || !strings.HasPrefix(why, field) || (field == "") != (why == "") {
			t.Errorf("%s: %q, %q, want %q", name, field, why, tc.want)
		}
	}
}

// TestVerify: what of cosign would verify nothing, or less than it seems to, is refused.
func TestVerify(t *testing.T) {
	keys, root := &meta.LocalObjectReference{Name: "keys"}, &meta.LocalObjectReference{Name: "root"}
	who := []sourcev1.OIDCIdentityMatch{{Issuer: "^https://login.example.com$", Subject: "^ci@example.com$"}}
	const both = "spec.verify has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only"
	for name, tc := range map[string]struct {
		verify *sourcev1.OCIRepositoryVerification
		want   string
	}{
		"nothing is verified":                    {},
		"keys":                                   {verify: &sourcev1.OCIRepositoryVerification{SecretRef: keys}},
		"keys, and a trusted root":               {verify: &sourcev1.OCIRepositoryVerification{SecretRef: keys, TrustedRootSecretRef: root}, want: both},
		"keys, and identities":                   {verify: &sourcev1.OCIRepositoryVerification{SecretRef: keys, MatchOIDCIdentity: who}, want: both},
		"identities, by a trusted root":          {verify: &sourcev1.OCIRepositoryVerification{TrustedRootSecretRef: root, MatchOIDCIdentity: who}},
		"anybody's signature, by a trusted root": {verify: &sourcev1.OCIRepositoryVerification{TrustedRootSecretRef: root}, want: "spec.verify without keys in secretRef, and without matchOIDCIdentity, would take what anybody signs: name the issuer and the subject of who may"},
		"identities, and nobody to trust":        {verify: &sourcev1.OCIRepositoryVerification{MatchOIDCIdentity: who}, want: "spec.verify without keys in secretRef needs a trusted root, and the one of the public Sigstore is not fetched: put its trusted_root.json, as cosign trusted-root create writes it, into a Secret, and name that in spec.verify.trustedRootSecretRef"},
	} {
		if got := unserved.Verify(tc.verify); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
