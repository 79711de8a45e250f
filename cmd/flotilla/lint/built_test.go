package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// foundIn are the findings of a folder that holds the files, and whose Kustomizations are built, and of other files.
func foundIn(t *testing.T, linter *lint.Linter, files map[string]string, folder string, others ...string) []string {
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
	read, err := lint.Files(append([]string{folder}, others...), nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint(t.Context(), read, lint.Options{Build: true, Folders: []string{folder}})
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

const settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"

// TestObjectsOfTwoKustomizations: what two Kustomizations of a source build is refused after the push.
func TestObjectsOfTwoKustomizations(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	const shop, files = ", targetNamespace: shop", "apps/a/settings.yaml"
	both := settings + strings.Replace(settings, "settings", "more", 1)
	shared := "fleet.yaml:10: error: Kustomization team/two: spec.path: builds %s, which Kustomization team/one builds, too: the control plane refuses the later one (SharedObject); remove it from one of them, or give one another targetNamespace"
	const vars = ", postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"
	const unknown = "fleet.yaml:5: warning: Kustomization team/NAME: spec.postBuild.substituteFrom: ConfigMap team/vars is not in these files: it was built without variables, and what they are put into was not checked"
	one := strings.Replace(shared, "%s", "ConfigMap/shop/settings", 1)
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"two have one path":                {map[string]string{files: settings, "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "apps/a", shop)}, []string{one}},
		"several objects are told at once": {map[string]string{files: both, "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "apps/a", shop)}, []string{strings.Replace(shared, "%s", "ConfigMap/shop/more and 1 more object", 1)}},
		"two folders take in one base": {map[string]string{
			"apps/base/settings.yaml": settings, "apps/base/kustomization.yaml": "resources: [settings.yaml]\n", "apps/a/kustomization.yaml": "resources: [../base]\n", "apps/b/kustomization.yaml": "resources: [../base]\n",
			"fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "./apps/b", shop),
		}, []string{one}},
		"each has a namespace of its own": {map[string]string{files: settings, "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "apps/a", ", targetNamespace: store")}, nil},
		"their sources differ":            {map[string]string{files: settings, "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("more", "two", "apps/a", shop)}, nil},
		"one is suspended":                {map[string]string{files: settings, "fleet.yaml": of("fleet", "one", "./apps/a", shop, ", suspend: true") + of("fleet", "two", "apps/a", shop)}, nil},
		"it is meant to be in several": {map[string]string{
			files: strings.Replace(settings, "name: settings", "name: settings, annotations: {kustomize.toolkit.fluxcd.io/ssa: Merge}", 1), "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "apps/a", shop),
		}, nil},
		"one goes to a cluster outside of the fleet": {map[string]string{files: settings, "fleet.yaml": of("fleet", "one", "./apps/a", shop) + of("fleet", "two", "apps/a", shop, ", kubeConfig: {secretRef: {name: prod}}")}, nil},
		"its name is not known": {map[string]string{
			files: strings.Replace(settings, "settings", "\"${name}\"", 1), "fleet.yaml": of("fleet", "one", "./apps/a", shop, vars) + of("fleet", "two", "apps/a", shop, vars),
		}, []string{strings.Replace(unknown, "NAME", "one", 1), strings.Replace(strings.Replace(unknown, "NAME", "two", 1), ":5:", ":10:", 1)}},
		"what one builds is in the files, too": {map[string]string{
			files: settings, "clusters/one.yaml": of("fleet", "one", "./apps/a", shop), "fleet.yaml": of("fleet", "root", "./clusters"),
		}, nil},
		"what comes of one is another one than in the files": {map[string]string{
			files: settings, "clusters/one.yaml": of("fleet", "one", "./apps/a", ", targetNamespace: \"${to:=store}\""), "fleet.yaml": of("fleet", "root", "./clusters", ", postBuild: {substitute: {to: store}}") + of("fleet", "two", "./apps/a", shop),
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, foundIn(t, linter, tc.files, ".")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestChildrenThatDependOnTheirParents: a child waits for itself if its parent waits for it, wherever the parent is.
func TestChildrenThatDependOnTheirParents(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	const app, onRoot = "repo/apps/a/settings.yaml", ", targetNamespace: shop, dependsOn: [{name: root}]"
	const circle = "repo/children/app.yaml:5: warning: Kustomization team/app: spec.dependsOn: circular dependency detected: team/app -> team/root, and team/root waits for the health of team/app: " +
		"remove one spec.dependsOn of these, or have team/root not wait for that by its spec.wait or spec.healthChecks"
	const checks = ", healthChecks: [{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: app, namespace: team}]"
	files := func(root string) map[string]string {
		return map[string]string{app: settings, "repo/children/app.yaml": of("fleet", "app", "./apps/a", onRoot), "repo/fleet.yaml": root}
	}
	outside := func(root string) map[string]string {
		return map[string]string{app: settings, "repo/.git/HEAD": "", "repo/children/app.yaml": of("fleet", "app", "./apps/a", onRoot), "fleet.yaml": root}
	}
	for name, tc := range map[string]struct {
		files  map[string]string
		others []string
		want   []string
	}{
		"its parent waits":                            {files(of("fleet", "root", "./children", ", wait: true")), nil, []string{circle}},
		"its parent checks its health":                {files(of("fleet", "root", "./children", checks)), nil, []string{circle}},
		"its parent waits for nothing":                {files(of("fleet", "root", "./children")), nil, nil},
		"another one waits":                           {files(of("fleet", "root", "./apps/a", ", targetNamespace: store, wait: true")), nil, nil},
		"its parent is of another source":             {files(of("more", "root", "./children", ", wait: true")), nil, nil},
		"its parent, which waits, is in another file": {outside(of("fleet", "root", "./children", ", wait: true")), []string{"fleet.yaml"}, []string{circle}},
		"its parent applies all of the repository":    {outside(of("fleet", "root", "./", ", wait: true")), []string{"fleet.yaml"}, []string{circle}},
		"what it depends on is in another file":       {outside(of("fleet", "root", "./nowhere", ", wait: true")), []string{"fleet.yaml"}, nil},
		"what it depends on is in none": {outside(of("fleet", "root", "./children")), nil, []string{
			"repo/children/app.yaml:5: warning: Kustomization team/app: spec.dependsOn[0]: Kustomization team/root is not in these files, and this one waits for it: add it, or ignore this if it is elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, foundIn(t, linter, tc.files, "repo", tc.others...)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatBuiltWorkloadsNeed: missing references are also found if only a Kustomization sets the namespace.
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

// TestApplicationsByThemselves: a kustomization that no Kustomization is there for is built as one of its path would be.
func TestApplicationsByThemselves(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	const policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: shop}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n"
	const missing = "kustomization.yaml: error: cannot be built: kustomization.yaml: resources: invalid manifest: \"setings.yaml\" is not in the source; add it, or remove the line"
	for name, tc := range map[string]struct {
		files  map[string]string
		folder string
		want   []string
	}{
		"it can be built":           {map[string]string{"kustomization.yaml": "resources: [settings.yaml]\n", "settings.yaml": settings}, ".", nil},
		"a resource is mistyped":    {map[string]string{"kustomization.yaml": "resources: [setings.yaml]\n", "settings.yaml": settings}, ".", []string{missing}},
		"there is nothing besides":  {map[string]string{"app/kustomization.yaml": "resources: [setings.yaml]\n"}, "app", []string{"app/" + missing}},
		"what comes out is checked": {map[string]string{"kustomization.yaml": "resources: [web.yaml]\npatches: [{path: p.yaml, target: {kind: PropagationPolicy}}]\n", "web.yaml": policy + strings.Replace(settings, "settings", "settings, namespace: shop", 1), "p.yaml": "- {op: add, path: /spec/priorty, value: 3}\n"}, ".", []string{"kustomization.yaml: error: PropagationPolicy shop/web: spec.priorty: unknown field, as it is built from ./"}},
		"bases are not built alone": {map[string]string{"base/kustomization.yaml": "resources: [setings.yaml]\n", "a/kustomization.yaml": "resources: [../base]\n"}, ".", []string{"a/kustomization.yaml: error: cannot be built: base/" + strings.TrimPrefix(missing, "kustomization.yaml: error: cannot be built: ")}},
		"nor are components":        {map[string]string{"kustomization.yaml": "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\npatches: [{patch: x}]\n", "web.yaml": settings}, ".", nil},
		"its base is in a folder above": {map[string]string{
			"base/kustomization.yaml": "resources: [settings.yaml]\n", "base/settings.yaml": settings, "a/kustomization.yaml": "resources: [../base]\n", ".git/HEAD": "",
		}, "a", nil},
		"the folder above is no repository": {map[string]string{
			"base/kustomization.yaml": "resources: [settings.yaml]\n", "base/settings.yaml": settings, "a/kustomization.yaml": "resources: [../base]\n",
		}, "a", []string{"a/kustomization.yaml: warning: was not built, as it takes in files from outside of a: name a folder that holds these, too, or: kustomize build a | flotilla validate -f -"}},
		"there are Kustomizations": {map[string]string{"fleet.yaml": of("fleet", "a", "./a"), "a/settings.yaml": strings.Replace(settings, "settings", "settings, namespace: shop", 1), "b/kustomization.yaml": "resources: [setings.yaml]\n"}, ".", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, foundIn(t, linter, tc.files, tc.folder)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEncryptedFiles: nobody needs the key to check what is around the values, and a Kustomization that would not decrypt them
// is found.
func TestEncryptedFiles(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "sources", "sops", "testdata", "secret.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const decrypts = ", decryption: {provider: sops, secretRef: {name: keys}}"
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"the Kustomization decrypts it": {map[string]string{"fleet.yaml": of("fleet", "a", "./a", decrypts), "a/db.yaml": string(content)}, ""},
		"it does not":                   {map[string]string{"fleet.yaml": of("fleet", "a", "./a"), "a/db.yaml": string(content)}, "a/db.yaml: cannot be decrypted: it is encrypted with SOPS for age1"},
		"there is none":                 {map[string]string{"kustomization.yaml": "resources: [db.yaml]\n", "db.yaml": string(content)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(foundIn(t, linter, tc.files, "."), "\n")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("findings %s, want %s", got, tc.want)
			}
		})
	}
}
