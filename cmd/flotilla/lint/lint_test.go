package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint"
)

// An error about YAML is reported where it is, not where its document begins.
func TestLineOfYAML(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  a: !!int b\n")}}, lint.Options{})
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
		report, err := linter.Lint(t.Context(), []lint.File{{Name: "-", Content: content}}, lint.Options{})
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

// TestWhatIsNotApplied: what a cluster wrote into a manifest that was exported from it is named, of all kinds.
func TestWhatIsNotApplied(t *testing.T) {
	const content = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\n  namespace: shop\n  ownerReferences:\n  - {apiVersion: apps/v1, kind: StatefulSet, name: db, uid: \"1\"}\n"
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(content)}}, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.yaml:6: warning: PersistentVolumeClaim shop/data: metadata.ownerReferences: is not applied by a Kustomization: they name owners of another cluster by their UIDs, " +
		"and what has an owner that is not there is deleted; remove them from the files"
	if len(report.Findings) != 1 || report.Findings[0].String() != want {
		t.Errorf("findings %v, want %s", report.Findings, want)
	}
}

// TestFormerPurgeModes: what the server takes by its former name is no fault.
func TestFormerPurgeModes(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]string{
		"Immediately": "",
		"Soon":        `a.yaml:5: error: PropagationPolicy shop/a: spec.failover.cluster.purgeMode: Unsupported value: "Soon": supported values: "Directly", "Gracefully"`,
	} {
		content := "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: a, namespace: shop}\nspec:\n  failover: {cluster: {purgeMode: " + mode + "}}\n" +
			"  propagateDeps: true\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n"
		report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(content)}}, lint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range report.Findings {
			if strings.Contains(f.String(), "purgeMode") {
				got = f.String()
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}

// TestKindsThatAreNotServed: those of Flux that only members act on are no faults, and a misspelt one is.
func TestKindsThatAreNotServed(t *testing.T) {
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"source.toolkit.fluxcd.io/v1 HelmRepository": "warning: HelmRepository shop/a: kind: is one of Flux's that the control plane does not act on",
		"helm.toolkit.fluxcd.io/v2 HelmRelease":      "warning: HelmRelease shop/a: kind: is one of Flux's that the control plane does not act on",
		"source.toolkit.fluxcd.io/v1 GitRepositry":   "error: GitRepositry shop/a: kind: source.toolkit.fluxcd.io/v1 has no kind GitRepositry",
		"helm.example.com/v2 HelmRelease":            "",
	} {
		t.Run(kind, func(t *testing.T) {
			version, name, _ := strings.Cut(kind, " ")
			content := "apiVersion: " + version + "\nkind: " + name + "\nmetadata: {name: a, namespace: shop}\n"
			report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(content)}}, lint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			for _, f := range report.Findings {
				got += f.String()
			}
			if !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("findings %q, want %q", got, want)
			}
		})
	}
}

// TestWhatWorkloadsNeed: a ConfigMap that no policy carries is named at the workload whose Pods would wait for it.
func TestWhatWorkloadsNeed(t *testing.T) {
	const web = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: settings}}]}]}
`
	const settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
	policy := func(selectors, more string) string {
		return "---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: shop}\nspec: {resourceSelectors: [" + selectors + "], placement: {}" + more + "}\n"
	}
	const deployments, maps, sets = "{apiVersion: apps/v1, kind: Deployment}", "{apiVersion: v1, kind: ConfigMap}", "{apiVersion: apps/v1, kind: StatefulSet}"
	set := func(more string) string {
		return "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop" + more + "}\nspec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}\n"
	}
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: web, image: web}], volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}\n"
	claim := func(name string) string {
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: shop}\nspec: {storageClassName: fast, volumeName: disk}\n"
	}
	const class = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/fast\n"
	const volume = "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\n"
	const own = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\nspec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}, {metadata: {name: log}, spec: {storageClassName: fast}}]}\n"
	const pods, claims = "{apiVersion: v1, kind: Pod}", "{apiVersion: v1, kind: PersistentVolumeClaim}"
	const wide = "---\napiVersion: policy.karmada.io/v1alpha1\nkind: ClusterPropagationPolicy\nmetadata: {name: wide}\nspec: {resourceSelectors: [{apiVersion: storage.k8s.io/v1, kind: StorageClass}], placement: {}}\n"
	const needsClass = "needs the StorageClass fast, which no policy of these files carries to clusters: select it in a ClusterPropagationPolicy, or ignore this if clusters have one of this name"
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		content string
		want    string
	}{
		"a Pod needs a claim":               {pod + claim("data") + policy(pods, ""), "a.yaml:2: warning: Pod shop/web: needs the PersistentVolumeClaim data, which no policy of these files carries to clusters: set propagateDeps: true in the policy web, or select it, too"},
		"its claim needs a class":           {claim("data") + class + policy(claims, ""), "a.yaml:2: warning: PersistentVolumeClaim shop/data: " + needsClass},
		"its claim goes along":              {claim("data") + pod + class + policy(pods, ", propagateDeps: true"), "a.yaml:2: warning: PersistentVolumeClaim shop/data: " + needsClass},
		"its claim needs a volume":          {claim("data") + volume + policy(claims, ""), "a.yaml:2: warning: PersistentVolumeClaim shop/data: needs the PersistentVolume disk, "},
		"its class is carried":              {claim("data") + class + wide + policy(claims, ""), ""},
		"its class is elsewhere":            {claim("data") + policy(claims, ""), ""},
		"a set's own claims need a class":   {own + class + policy(sets, ""), "a.yaml:2: warning: StatefulSet shop/db: " + needsClass},
		"a claim is made ahead for a set":   {own + claim("data-db-0") + policy(sets, ", propagateDeps: true"), "a.yaml:2: warning: StatefulSet shop/db: needs the PersistentVolumeClaim data-db-0, which no policy of these files carries to clusters: select it in a policy, too, as it would make an empty one there"},
		"a claim that is made ahead goes":   {own + claim("data-db-0") + policy(sets+", "+claims, ""), ""},
		"a claim only begins with its name": {own + claim("data-db-copy") + policy(sets, ""), ""},
		"nobody carries it":                 {web + settings + policy(deployments, ""), "a.yaml:2: warning: Deployment shop/web: needs the ConfigMap settings, which no policy of these files carries to clusters: set propagateDeps: true in the policy web, or select it, too"},
		"it would take its claims along":    {set("") + policy(sets, ""), "a.yaml:5: warning: StatefulSet shop/db: spec.persistentVolumeClaimRetentionPolicy: Delete is Retain in clusters, so that a move takes no data: claims stay there. Annotate it with propagation.flotilla.io/allow-cascade: \"true\" to have them go with it, moved or not"},
		"it says that its data goes":        {set(`, annotations: {propagation.flotilla.io/allow-cascade: "true"}`) + policy(sets, ""), ""},
		"no policy carries its claims":      {set(""), ""},
		"it goes along":                     {web + settings + policy(deployments, ", propagateDeps: true"), ""},
		"it is selected":                    {web + settings + policy(deployments+", "+maps, ""), ""},
		"it is elsewhere":                   {web + policy(deployments, ""), ""},
		"nobody carries either":             {web + settings + policy("{apiVersion: v1, kind: ConfigMap, name: other}", ""), "web: spec.resourceSelectors: selects no template"},
		"nobody needs it":                   {settings + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n" + policy("{apiVersion: v1, kind: Service}", ""), ""},
		"there are policies for it":         {web + settings + policy(deployments, "") + strings.Replace(policy(maps, ""), "name: web", "name: more", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := linter.Lint(t.Context(), []lint.File{{Name: "a.yaml", Content: []byte(tc.content)}}, lint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var findings []string
			for _, f := range report.Findings {
				findings = append(findings, f.String())
			}
			if got := strings.Join(findings, "\n"); got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestPatchesAreNoObjects: what a kustomization has as patches changes an object, and is not there besides.
func TestPatchesAreNoObjects(t *testing.T) {
	const policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: web, namespace: shop}\n"
	files := map[string]string{
		"base/kustomization.yaml": "resources: [policy.yaml]\npatches: [{path: lower.yaml}, {path: ./list.yaml}]\n",
		"base/policy.yaml":        policy + "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n",
		"base/lower.yaml":         policy + "spec: {priority: 3, $patch: merge}\n",
		"base/list.yaml":          "- {op: remove, path: /spec/priority}\n",
		"old/kustomization.yaml":  "resources: [../base]\npatchesStrategicMerge: [wrong.yaml]\n",
		"old/wrong.yaml":          policy + "spec: {priorty: 3}\n",
		"old/besides.yaml":        policy + "spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n",
	}
	t.Chdir(t.TempDir())
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	linter, err := lint.New()
	if err != nil {
		t.Fatal(err)
	}
	read, err := lint.Files([]string{"."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := linter.Lint(t.Context(), read, lint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.String())
	}
	want := []string{
		"old/besides.yaml:1: warning: PropagationPolicy shop/web: is there twice: the first is in base/policy.yaml, line 1; there are kustomizations: check what kustomize builds instead",
		"old/wrong.yaml:4: error: PropagationPolicy shop/web: spec.priorty: unknown field",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
