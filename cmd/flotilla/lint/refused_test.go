package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// TestWhatIsRefusedLater: what the server takes and the loops refuse is an error in files, in the words of the condition.
func TestWhatIsRefusedLater(t *testing.T) {
	const git = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, url: \"https://git.test/a\""
	const oci = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, url: \"oci://registry.test/a\""
	const bucket = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, endpoint: s3.test, bucketName: fleet"
	const ks = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: shop}\nspec: {interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: a}"
	const strict = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: shop, annotations: {kustomize.flotilla.io/strict-variables: \"yes\"}}\nspec: {interval: 1m, prune: true, sourceRef: {kind: GitRepository, name: a}"
	const guard = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: a, namespace: shop, annotations: {gitops.flotilla.io/rollback-protection: \"on\"}}\nspec: {interval: 1m, url: \"https://git.test/a\""
	const lfs = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: a, namespace: shop, annotations: {gitops.flotilla.io/lfs: \"yes\"}}\nspec: {interval: 1m, url: \"https://git.test/a\""
	const hook = "apiVersion: notification.toolkit.fluxcd.io/v1\nkind: Receiver\nmetadata: {name: a, namespace: shop}\nspec: {type: github, secretRef: {name: a}"
	for name, tc := range map[string]struct{ content, want string }{
		"nothing":                       {git, ""},
		"the identity of a cloud":       {git + ", provider: aws", "spec.provider: aws takes a flotillad that was built with -tags clouds: build it with that, or remove it, and name a Secret with the username and password of the user's Git credentials in spec.secretRef"},
		"a GitHub App without its keys": {git + ", provider: github", "spec.provider: github needs the keys of a GitHub App: name a Secret with them in spec.secretRef"},
		"the same, for a registry":      {oci + ", provider: aws", "spec.provider: aws is served with a login alone, as no identity of a machine is used: name a Secret that has one for the registry in spec.secretRef"},
		"a bucket":                      {bucket + ", sts: {provider: ldap, endpoint: \"https://sts.test\"}", ""},
		"a bucket of a cloud":           {bucket + ", provider: gcp", "spec.provider: gcp takes a flotillad that was built with -tags clouds: build it with that, or set it to generic, with endpoint storage.googleapis.com, and a Secret with an HMAC key as accesskey and secretkey in spec.secretRef"},
		"a registry in capitals":        {strings.Replace(oci, "registry.test/a", "registry.test/Acme/App", 1), "spec.url: has upper-case letters, which no repository has: write oci://registry.test/acme/app"},
		"a registry with a tag":         {strings.Replace(oci, "registry.test/a", "registry.test/a:v1", 1), "spec.url: has to be oci://host/repository, with neither a tag nor a digest, which belong into spec.ref"},
		"a bucket with a scheme":        {strings.Replace(bucket, "s3.test", "\"https://s3.test\"", 1), "spec.endpoint: is host or host:port, without a scheme: spec.insecure says that it speaks HTTP"},
		"a bucket of Amazon's, too":     {strings.Replace(bucket, "s3.test", "\"https://s3.test\"", 1) + ", provider: aws, secretRef: {name: a}", "spec.endpoint: is host or host:port, without a scheme: spec.insecure says that it speaks HTTP"},
		"another cluster":               {ks + ", kubeConfig: {secretRef: {name: a}}", ""},
		"another cluster of a cloud":    {ks + ", kubeConfig: {configMapRef: {name: a}}", "spec.kubeConfig.configMapRef: is not supported yet: it is for identities of clouds: name a Secret with a kubeconfig in spec.kubeConfig.secretRef, or join the cluster to the fleet, and propagate to it with a PropagationPolicy"},
		"keys of a cloud":               {ks + ", decryption: {provider: sops, serviceAccountName: a}", "spec.decryption.serviceAccountName: is not supported yet: it is for keys of clouds: name a Secret with age or OpenPGP keys in spec.decryption.secretRef"},
		"a guard that is mistyped":      {guard, `metadata.annotations: the annotation gitops.flotilla.io/rollback-protection is "on": make it "hold", or remove it`},
		"a guard of a registry":         {strings.NewReplacer("GitRepository", "OCIRepository", "https://", "oci://").Replace(guard), `metadata.annotations: the annotation gitops.flotilla.io/rollback-protection is "on": make it "hold", or remove it`},
		"LFS, or not":                   {lfs, `metadata.annotations: the annotation gitops.flotilla.io/lfs is "yes": make it "true" or "false"`},
		"a filter of all":               {hook + `, resources: [{kind: GitRepository, name: a}], resourceFilter: "res.metadata.("`, "spec.resourceFilter: invalid expression: Syntax error: no viable alternative at input '.(' (line 1, character 14)"},
		"a filter of one":               {hook + `, resources: [{kind: GitRepository, name: a, filter: "claims.sub"}]`, "spec.resources[0].filter: invalid expression: undeclared reference to 'claims'"},
		"a kind that nobody looks at":   {hook + `, resources: [{kind: HelmRepository, name: a}]`, "warning spec.resources[0].kind: nobody looks at HelmRepository/a: such kinds are not served yet"},
		"a Receiver without a Secret":   {strings.NewReplacer("type: github", "type: generic", ", secretRef: {name: a}", "").Replace(hook) + `, resources: [{kind: GitRepository, name: a}]`, "spec.secretRef: is missing: name a Secret with the key token"},
		"a Receiver that needs none":    {strings.NewReplacer("type: github", "type: generic-oidc", ", secretRef: {name: a}", "").Replace(hook) + `, oidcProviders: [{issuerURL: "https://issuer.test", audience: a, validations: [{expression: "true", message: a}]}], resources: [{kind: GitRepository, name: a}]`, ""},
		"no range of versions":          {git + ", ref: {semver: abc}", `spec.ref.semver: "abc" is no range of versions, such as 1.2.x or >=1.2.0 <2.0.0`},
		"a range that does not count":   {git + ", ref: {semver: abc, name: refs/heads/main}", ""},
		"no commit":                     {git + ", ref: {commit: HEAD}", `spec.ref.commit: "HEAD" must be 40 lower-case hex digits`},
		"no range of a registry":        {oci + ", ref: {semver: abc}", `spec.ref.semver: "abc" is no range of versions, such as 1.2.x or >=1.2.0 <2.0.0`},
		"no filter of a registry":       {oci + ", ref: {semver: 1.x, semverFilter: (}", "spec.ref.semverFilter: is no regular expression: missing closing )"},
		"a tag that none has signed":    {git + ", ref: {branch: main}, verify: {mode: Tag, secretRef: {name: a}}", "spec.verify.mode: Tag needs a signed tag, and spec.ref leads to none: name one in spec.ref.tag or spec.ref.semver, or use the mode HEAD"},
		"a tag by its full name":        {git + ", ref: {name: refs/tags/v1}, verify: {mode: TagAndHEAD, secretRef: {name: a}}", ""},
		"a signed tag":                  {git + ", ref: {branch: main, tag: v1}, verify: {mode: Tag, secretRef: {name: a}}", ""},
		"a name that is made":           {"apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-, namespace: shop", "metadata.name: is missing: what gets its name from generateName cannot be applied again, and is refused"},
		"neither true nor false":        {strict, `metadata.annotations: the annotation kustomize.flotilla.io/strict-variables is "yes": make it "true" or "false"`},
	} {
		t.Run(name, func(t *testing.T) {
			linter, err := lint.New()
			if err != nil {
				t.Fatal(err)
			}
			report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(tc.content + "}\n")}}, lint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range report.Findings {
				got += string(f.Severity) + " " + f.Field + ": " + f.Message
			}
			want := tc.want
			if want != "" && !strings.HasPrefix(want, "warning ") {
				want = "error " + want
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
