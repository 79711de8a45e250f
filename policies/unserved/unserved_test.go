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
	for name, tc := range map[string]struct {
		spec       sourcev1.GitRepositorySpec
		field, app string
	}{
		"nothing is asked for":          {},
		"the identity of a cloud":       {spec: sourcev1.GitRepositorySpec{Provider: "aws"}, field: "spec.provider"},
		"a ServiceAccount":              {spec: sourcev1.GitRepositorySpec{ServiceAccountName: "a"}, field: "spec.serviceAccountName"},
		"a GitHub App":                  {spec: sourcev1.GitRepositorySpec{Provider: "github", SecretRef: &meta.LocalObjectReference{Name: "app"}}},
		"a GitHub App without its keys": {spec: sourcev1.GitRepositorySpec{Provider: "github"}, app: "spec.provider github needs"},
	} {
		field, why := unserved.GitRepository(tc.spec)
		if field != tc.field || !strings.HasPrefix(why, tc.field) {
			t.Errorf("%s: %q, %q", name, field, why)
		}
		if got := unserved.AppWithoutSecret(tc.spec); (got == "") != (tc.app == "") || !strings.HasPrefix(got, tc.app) {
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

// TestProvider: a login in a Secret counts, whatever the provider.
func TestProvider(t *testing.T) {
	spec := sourcev1.OCIRepositorySpec{Provider: "aws"}
	if not, _ := unserved.Provider(spec); !not {
		t.Error("the identity of a cloud is served")
	}
	spec.SecretRef = &meta.LocalObjectReference{Name: "login"}
	if not, instead := unserved.Provider(spec); not {
		t.Errorf("a login is refused: %s", instead)
	}
}
