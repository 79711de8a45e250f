package lint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// TestSignatures: what the control plane refuses of spec.verify is an error in files, in the words of the condition.
func TestSignatures(t *testing.T) {
	const oci = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, url: \"oci://registry.test/a\""
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ content, want string }{
		"a signature by anybody":    {oci + ", verify: {provider: cosign}", "spec.verify: without keys in secretRef needs a trusted root, and the one of the public Sigstore is not fetched: put its trusted_root.json, as cosign trusted-root create writes it, into a Secret, and name that in spec.verify.trustedRootSecretRef"},
		"one by anybody of a root":  {oci + ", verify: {provider: cosign, trustedRootSecretRef: {name: a}}", "spec.verify: without keys in secretRef, and without matchOIDCIdentity, would take what anybody signs: name the issuer and the subject of who may"},
		"one by a key, or somebody": {oci + ", verify: {provider: cosign, secretRef: {name: a}, matchOIDCIdentity: [{issuer: a, subject: b}]}", "spec.verify: has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only"},
		"one by nobody":             {oci + ", verify: {provider: cosign, trustedRootSecretRef: {name: a}, matchOIDCIdentity: [{issuer: a, subject: \"(\"}]}", "spec.verify.matchOIDCIdentity[0].subject: is no regular expression: missing closing )"},
		"one by keys":               {oci + ", verify: {provider: cosign, secretRef: {name: a}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(tc.content + "}\n")}}, lint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range report.Findings {
				got += f.Field + ": " + f.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
