package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// foundIn are the findings of a folder that holds the files, and whose Kustomizations are built.
func foundIn(t *testing.T, linter *lint.Linter, files map[string]string, folder string) []string {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read, err := lint.Files([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint(t.Context(), read, lint.Options{Build: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.String())
	}
	return got
}

// of is a Kustomization of a source, with a path and more of its spec.
func of(source, name, path string, more ...string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: team}\nspec: {interval: 1m, prune: true, path: " + path +
		", sourceRef: {kind: GitRepository, name: " + source + "}" + strings.Join(more, "") + "}\n"
}

// TestWhatBuiltWorkloadsNeed: it is told as well where only a Kustomization gives the namespace.
func TestWhatBuiltWorkloadsNeed(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {serviceAccountName: sa, containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: sa}
`
	policy := func(more string) string {
		return "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: n}\nspec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}" + more + "}\n"
	}
	fleet := of("fleet", "apps", "./apps", ", targetNamespace: n") + of("fleet", "policies", "./policies")
	const want = "fleet.yaml:2: warning: Deployment n/web: needs the ServiceAccount sa, which no policy of these files carries to clusters: set propagateDeps: true in the policy web, or select it, too, as Kustomization team/apps builds it from ./apps"
	for name, tc := range map[string]struct {
		policy string
		want   []string
	}{
		"no policy carries it": {policy(""), []string{want}},
		"it goes along":        {policy(", propagateDeps: true"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"fleet.yaml": fleet, "apps/web.yaml": web, "policies/web.yaml": tc.policy}
			if diff := cmp.Diff(tc.want, foundIn(t, linter, files, ".")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
