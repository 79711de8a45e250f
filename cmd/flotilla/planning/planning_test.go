package planning

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/reconciler/forecast/snapshot"
)

var golden = commandtest.Golden("testdata")

// cluster serves what the files have.
func cluster(name string) clusterv1alpha1.Cluster {
	c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.SyncMode, c.Spec.APIEndpoint, c.Spec.Region = clusterv1alpha1.Push, "https://"+name+".example.com", name[:2]
	c.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "secrets", Kind: "Secret"}}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	return c
}

// exported writes a fleet to a file.
func exported(t *testing.T, change ...func(*snapshot.Snapshot)) string {
	t.Helper()
	s := &snapshot.Snapshot{At: metav1.NewTime(time.Unix(0, 0).UTC()), Clusters: []clusterv1alpha1.Cluster{cluster("eu-1"), cluster("eu-2"), cluster("us-1")}}
	for _, f := range change {
		f(s)
	}
	content, err := s.Write()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// digests are others in each call.
var digests = regexp.MustCompile(`\(hidden: [0-9a-f]{12}\)`)

// call runs the command line, and returns what it prints as golden files have it.
func call(t *testing.T, in string, args ...string) commandtest.Result {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	r := commandtest.Run(t.Context(), commandtest.Root(Commands), in, args...)
	r.Out = digests.ReplaceAllString(r.Out, "(hidden: DIGEST)")
	return r
}

// TestPlanOffline: what is printed of a change, without a control plane.
func TestPlanOffline(t *testing.T) {
	file := exported(t)
	for name, args := range map[string][]string{
		"text":     {},
		"markdown": {"-o", "markdown"},
		"json":     {"-o", "json"},
		"yaml":     {"-o", "yaml", "-C", "us-1"},
		"cluster":  {"--cluster", "us-1", "--exit-code"},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, "", append([]string{"plan", "testdata/head", "--base", "testdata/base", "--fleet", file}, args...)...)
			golden(t, name+".golden", got.String())
			for _, word := range []string{"hunter", "aHVudGVy"} {
				if strings.Contains(got.String(), word) {
					t.Errorf("a value of a Secret is printed: %s", word)
				}
			}
		})
	}
}

// TestExitCodes: 0 for the same, 1 for a change, 2 for what is wrong, each in one line.
func TestExitCodes(t *testing.T) {
	file := exported(t)
	broken := func(name string, change func(string) string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(change(string(content))), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cut := broken("cut.yaml", func(s string) string { return s[:len(s)*2/3] })
	other := broken("other.yaml", func(s string) string { return strings.Replace(s, "cli.flotilla.io/v1alpha1", "cli.flotilla.io/v9", 1) })
	none := broken("none.yaml", func(string) string { return "- a\n- b\n" })
	cases := map[string]struct {
		args []string
		code int
		want string // in the error
	}{
		"the same":                         {[]string{"testdata/base", "--base", "testdata/base", "--fleet", file, "--exit-code"}, 0, ""},
		"a change":                         {[]string{"testdata/head", "--base", "testdata/base", "--fleet", file, "--exit-code"}, 1, ""},
		"a change, without a word of that": {[]string{"testdata/head", "--base", "testdata/base", "--fleet", file}, 0, ""},
		"no files":                         {nil, 2, "the files of the change are missing"},
		"no base":                          {[]string{"testdata/head", "--fleet", file}, 2, "--fleet needs --base"},
		"a folder that is not there":       {[]string{"nowhere", "--base", "testdata/base", "--fleet", file}, 2, "there is no file or folder nowhere"},
		"a fleet that is not there":        {[]string{"testdata/head", "--base", "testdata/base", "--fleet", "nowhere"}, 2, "no such file"},
		"a fleet that is a folder":         {[]string{"testdata/head", "--base", "testdata/base", "--fleet", "testdata"}, 2, "testdata is no file"},
		"a fleet without an end":           {[]string{"testdata/head", "--base", "testdata/base", "--fleet", "/dev/zero"}, 2, "/dev/zero is no file"},
		"a fleet that was cut short":       {[]string{"testdata/head", "--base", "testdata/base", "--fleet", cut}, 2, "was cut short: export it again"},
		"a fleet of another version":       {[]string{"testdata/head", "--base", "testdata/base", "--fleet", other}, 2, `is an export of version "cli.flotilla.io/v9"`},
		"a fleet that is none":             {[]string{"testdata/head", "--base", "testdata/base", "--fleet", none}, 2, "is no export of a fleet"},
		"a cluster that is not there":      {[]string{"testdata/head", "--base", "testdata/base", "--fleet", file, "-C", "mars"}, 2, "there is no cluster mars in the fleet"},
		"a Kustomization that is not":      {[]string{"testdata/head", "--base", "testdata/base", "--fleet", file, "--kustomization", "a/b"}, 2, "there is no Kustomization a/b"},
		"a format that is none":            {[]string{"testdata/head", "-o", "xml"}, 2, `there is no -o "xml" here`},
		"files that are no manifests":      {[]string{"-", "--base", "testdata/base", "--fleet", file, "--exit-code"}, 2, "apiVersion or kind is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, "a: b\n", append([]string{"plan"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Err, tc.want) || strings.Count(got.Err, "\n") > 1 || tc.want == "" && got.Err != "" {
				t.Errorf("code %d, want %d, with %q in\n%s", got.Code, tc.code, tc.want, got.Err)
			}
		})
	}
}

// TestKustomization: what a Kustomization is told to keep stays, its variables that the fleet's file does not have are
// compared as they are written, and its brake is asked.
func TestKustomization(t *testing.T) {
	ks := func(s *snapshot.Snapshot) {
		of := kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux", Name: "shop"}}
		of.Spec.Prune, of.Spec.Path = true, "./shop"
		of.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
		of.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "vars"}}}
		s.Kustomizations = append(s.Kustomizations, of)
	}
	const policy = "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: maps, namespace: shop}\nspec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {}}\n"
	settings := func(name, more, size string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop" + more + "}\ndata: {size: '" + size + "'}\n"
	}
	before, after := t.TempDir(), t.TempDir()
	for _, dir := range []string{before, after} {
		if err := os.Mkdir(filepath.Join(dir, "shop"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(before, "shop", "all.yaml"), policy+settings("a", "", "${SIZE}")+settings("b", ", annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}", "x")+
		settings("c", "", "x")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: old}\n")
	write(t, filepath.Join(after, "shop", "all.yaml"), policy+settings("a", "", "${SIZE}0"))
	got := call(t, "", "plan", after, "--base", before, "--fleet", exported(t, ks), "--kustomization", "flux/shop", "-C", "eu-1")
	golden(t, "kustomization.golden", got.String())
}

// TestExport: no value of a Secret, nothing by which clusters are reached, and nothing of what holds text of a Secret
// gets into the file, and what is in it comes back.
func TestExport(t *testing.T) {
	holds := map[string]any{"kustomize.flotilla.io/holds-secrets": "fields"}
	file := exported(t, func(s *snapshot.Snapshot) {
		s.Clusters[0].Spec.ProxyURL, s.Clusters[0].Spec.SecretRef = "http://proxy", &clusterv1alpha1.LocalSecretReference{Name: "hunter2"}
		s.Templates = []map[string]any{
			{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key", "namespace": "shop", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}, "data": map[string]any{"password": "hunter2"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "dsn", "namespace": "shop", "annotations": holds}, "data": map[string]any{"url": "hunter2"}},
			{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"message": "hunter2"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "odd", "namespace": "shop"}, "data": map[string]any{"a": "\x7f"}},
		}
		s.Policies.Overrides = []policyv1alpha1.OverridePolicy{{ObjectMeta: metav1.ObjectMeta{Name: "hunter2", Annotations: map[string]string{"kustomize.flotilla.io/holds-secrets": "name"}}}}
	})
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hunter", "proxy", "example.com"} {
		if strings.Contains(string(content), word) {
			t.Errorf("%s is in the file:\n%s", word, content)
		}
	}
	s, err := snapshot.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key", "namespace": "shop", "annotations": map[string]any{}}, "data": map[string]any{"password": snapshot.Withheld}},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"}, "spec": map[string]any{"replicas": int64(3)}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "odd", "namespace": "shop"}, "data": map[string]any{"a": "\x7f"}},
	}
	if diff := cmp.Diff(want, s.Templates); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if got := s.Clusters[0]; got.Name != "eu-1" || got.Spec.Region != "eu" || len(got.Spec.Taints) != 1 || len(got.Status.APIEnablements) != 2 {
		t.Errorf("cluster = %+v", got)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestKustomizationsAmongFiles: a change that removes an application by its Kustomization is not said to change nothing.
func TestKustomizationsAmongFiles(t *testing.T) {
	child := func(name, path string) string {
		return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux}\nspec: {path: " + path + ", prune: true, interval: 1m, sourceRef: {kind: GitRepository, name: fleet}}\n"
	}
	before, after := t.TempDir(), t.TempDir()
	write(t, filepath.Join(before, "all.yaml"), child("same", "./same")+child("gone", "./gone")+child("moved", "./here"))
	write(t, filepath.Join(after, "all.yaml"), child("same", "./same")+child("moved", "./there")+child("new", "./new"))
	got := call(t, "", "plan", after, "--base", before, "--fleet", exported(t), "--exit-code")
	var names []string
	for line := range strings.Lines(got.Out) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "NotFollowed  Kustomization "); is {
			names = append(names, strings.Join(strings.Fields(name)[:2], " "))
		}
	}
	if diff := cmp.Diff([]string{"flux/gone goes,", "flux/moved changes,", "flux/new comes,"}, names); diff != "" || got.Code != 1 {
		t.Errorf("code %d; (-want +got):\n%s\n%s", got.Code, diff, got)
	}
}

// TestSecretsOfBothFiles: values that are in the files before and after are compared, whatever the fleet's file withholds.
func TestSecretsOfBothFiles(t *testing.T) {
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\ndata: {password: " + value + "}\n---\n" +
			"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: db, namespace: shop}\nspec: {resourceSelectors: [{apiVersion: v1, kind: Secret}], placement: {}}\n"
	}
	held := func(s *snapshot.Snapshot) {
		s.Templates = append(s.Templates, map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "db", "namespace": "shop"}, "data": map[string]any{"password": "b25l"}})
	}
	before, same, after := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(before, "all.yaml"), secret("b25l"))
	write(t, filepath.Join(same, "all.yaml"), secret("b25l"))
	write(t, filepath.Join(after, "all.yaml"), secret("dHdv"))
	fleet := exported(t, held)
	if got := call(t, "", "plan", same, "--base", before, "--fleet", fleet, "--exit-code"); got.Code != 0 {
		t.Errorf("the same value: %s", got)
	}
	if got := call(t, "", "plan", after, "--base", before, "--fleet", fleet, "--exit-code"); got.Code != 1 || !strings.Contains(got.Out, "Secret shop/db") || strings.Contains(got.Out, "dHdv") {
		t.Errorf("another value: %s", got)
	}
}
