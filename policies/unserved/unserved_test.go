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
