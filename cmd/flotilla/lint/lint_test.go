package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// An error about YAML is reported where it is, not where its document begins.
func TestLineOfYAML(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint([]lint.File{{Name: "a.yaml", Content: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: !!int b\n")}}, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.yaml:5: error: invalid manifest: the value is not what its tag !!int says"
	if len(report.Findings) != 1 || report.Findings[0].String() != want {
		t.Errorf("findings %v, want %s", report.Findings, want)
	}
}

// Whatever is in a file, it is judged without a panic, and each finding is one
// line.
func FuzzLint(f *testing.F) {
	for _, name := range []string{"good.yaml", "refused.yaml", "unwise.yaml", "duplicate-key.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "testdata", "validate", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata: {name: a}\nspec: {target: {apiVersion: a/b, kind: c}, customizations: {retention: {luaScript: x}}}"))
	f.Add([]byte("apiVersion: work.karmada.io/v1alpha1\nkind: Work\nmetadata: [a]\nspec: {workload: {manifests: [{kind: 3}]}}"))
	linter, err := lint.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		report, err := linter.Lint([]lint.File{{Name: "-", Content: content}}, lint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range report.Findings {
			if strings.ContainsAny(finding.String(), "\n\r") {
				t.Errorf("more than one line: %q", finding)
			}
		}
	})
}
