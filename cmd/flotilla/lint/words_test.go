package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// TestBooleansOfYAML: a word that is a boolean to some readers is a text here, as to whoever builds it, and it is said what to write.
func TestBooleansOfYAML(t *testing.T) {
	const head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, sourceRef: {kind: GitRepository, name: a}, "
	const body = `spec.prune: Invalid value: "string": spec.prune in body must be of type boolean: "string"`
	for content, want := range map[string]string{
		"prune: true":  "",
		"prune: TRUE":  "",
		"prune: yes":   body + "; yes is a text to a Kustomization, as in Flux, and a boolean to kubectl alone: write true",
		"prune: On":    body + "; On is a text to a Kustomization, as in Flux, and a boolean to kubectl alone: write true",
		"prune: n":     body + "; n is a text to a Kustomization, as in Flux, and a boolean to kubectl alone: write false",
		"prune: maybe": body,
		"prune: true, postBuild: {substitute: {ANSWER: yes}}": "",
		"prune: true, dependsOn: [{name: on}]":                "",
	} {
		linter, err := lint.New()
		if err != nil {
			t.Fatal(err)
		}
		report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(head + content + "}\n")}}, lint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range report.Findings {
			got += f.Field + ": " + f.Message
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", content, diff)
		}
	}
}

// TestShortAddresses: what people clone by is no URL, and it is said which one to write.
func TestShortAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"git@git.test:shop/app.git": `spec.url: Invalid value: "git@git.test:shop/app.git": spec.url in body should match '^(http|https|ssh)://.*$': write ssh://git@git.test/shop/app.git`,
		"git.test/shop/app.git":     `spec.url: Invalid value: "git.test/shop/app.git": spec.url in body should match '^(http|https|ssh)://.*$'`,
	} {
		linter, err := lint.New()
		if err != nil {
			t.Fatal(err)
		}
		content := "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, url: " + address + "}\n"
		report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(content)}}, lint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range report.Findings {
			got += f.Field + ": " + f.Message
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}
