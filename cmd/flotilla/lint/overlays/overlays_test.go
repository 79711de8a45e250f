package overlays_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// repository writes files below a new folder; a name that ends with a slash is a folder.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		at := filepath.Join(root, filepath.FromSlash(name))
		folder := filepath.Dir(at)
		if strings.HasSuffix(name, "/") {
			folder = at
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if folder == at {
			continue
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func config(name string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\n"
}

func kustomization(name, path, source string, change ...func(*kustomizev1.KustomizationSpec)) overlays.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	ks.Spec = kustomizev1.KustomizationSpec{Path: path, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: source}}
	for _, c := range change {
		c(&ks.Spec)
	}
	return overlays.Kustomization{Kustomization: ks}
}

// resultsOf returns what came of each Kustomization: its objects, what is unknown, or why it cannot be built.
func resultsOf(t *testing.T, in overlays.Input) (results []string, others int) {
	t.Helper()
	found, others, err := overlays.Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		out := []string{r.Of.Name + ":"}
		for _, obj := range r.Objects {
			out = append(out, inventory.Describe(inventory.IDOf(obj)))
		}
		for _, name := range r.Unknown {
			out = append(out, "without "+name)
		}
		if r.Err != nil {
			out = append(out, r.Err.Error())
		}
		if r.Doubt {
			out = append(out, "in doubt")
		}
		results = append(results, strings.Join(out, " "))
	}
	return results, others
}

// TestWhichFolderIsTheSource: paths are those of the repository, whichever folder of it is looked at.
func TestWhichFolderIsTheSource(t *testing.T) {
	fleet := map[string]string{".git/": "", "clusters/a.yaml": config("cluster"), "apps/a.yaml": config("app"), "nested/apps/a.yaml": config("nested"), "nested/clusters/": ""}
	unpacked := map[string]string{"clusters/a.yaml": config("cluster"), "apps/a.yaml": config("app")}
	app, whole := kustomization("web", "./apps", "fleet"), kustomization("all", "./", "fleet")
	for name, tc := range map[string]struct {
		files          map[string]string
		folder         string
		kustomizations []overlays.Kustomization
		want           []string
		others         int
	}{
		"the repository":                      {fleet, ".", []overlays.Kustomization{app}, []string{"web: ConfigMap/shop/app"}, 0},
		"a folder of it":                      {fleet, "clusters", []overlays.Kustomization{app}, []string{"web: ConfigMap/shop/app"}, 0},
		"one that is a repository of its own": {fleet, "nested", []overlays.Kustomization{kustomization("web", "./apps", "fleet"), kustomization("c", "clusters", "fleet")}, []string{"web: ConfigMap/shop/app", "c: ConfigMap/shop/cluster"}, 0},
		"more paths are there":                {map[string]string{".git/": "", "apps/": "", "nested/apps/a.yaml": config("nested"), "nested/more/a.yaml": config("more")}, "nested", []overlays.Kustomization{app, kustomization("more", "more/", "fleet")}, []string{"web: ConfigMap/shop/nested", "more: ConfigMap/shop/more"}, 0},
		"what is in no repository":            {unpacked, ".", []overlays.Kustomization{app}, []string{"web: ConfigMap/shop/app"}, 0},
		"a folder of what is in none":         {unpacked, "clusters", []overlays.Kustomization{app}, []string{`web: spec.path "./apps": path not found in the source, which has no folders in doubt`}, 0},
		"no path tells":                       {fleet, "clusters", []overlays.Kustomization{whole}, []string{"all: ConfigMap/shop/cluster in doubt"}, 0},
		"one path is mistyped":                {fleet, "clusters", []overlays.Kustomization{app, kustomization("typo", "./aps", "fleet")}, []string{"web: ConfigMap/shop/app", `typo: spec.path "./aps": path not found in the source, which has apps, clusters, nested (did you mean ./apps?)`}, 0},
		"another source":                      {fleet, ".", []overlays.Kustomization{app, kustomization("other", "./deploy", "other")}, []string{"web: ConfigMap/shop/app"}, 1},
		"another source, of its whole":        {fleet, ".", []overlays.Kustomization{app, kustomization("other", "", "other")}, []string{"web: ConfigMap/shop/app"}, 1},
		"a source of another kind": {fleet, ".", []overlays.Kustomization{kustomization("web", "./apps", "fleet", func(spec *kustomizev1.KustomizationSpec) {
			spec.SourceRef.Kind = sourcev1.OCIRepositoryKind
		})}, nil, 1},
		"a path out of it": {fleet, "nested", []overlays.Kustomization{app, kustomization("out", "../../..", "fleet")}, []string{"web: ConfigMap/shop/app", `out: spec.path "../../..": path not found; it leads out of the source`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, others := resultsOf(t, overlays.Input{Folder: filepath.Join(repository(t, tc.files), tc.folder), Kustomizations: tc.kustomizations})
			if diff := cmp.Diff(tc.want, got); diff != "" || others != tc.others {
				t.Errorf("%d others, want %d (-want +got):\n%s", others, tc.others, diff)
			}
		})
	}
}

// TestWhatASourceLeavesOut: what it would not fetch is not built.
func TestWhatASourceLeavesOut(t *testing.T) {
	root := repository(t, map[string]string{"apps/a.yaml": config("a"), "apps/b.yaml": config("b"), "apps/c.yaml": config("c"), "more/a.yaml": config("more"), ".sourceignore": "c.yaml\n"})
	in := overlays.Input{Folder: root, Kustomizations: []overlays.Kustomization{kustomization("web", "apps", "fleet"), kustomization("more", "more", "fleet")}}
	got, _ := resultsOf(t, in)
	if diff := cmp.Diff([]string{"web: ConfigMap/shop/a ConfigMap/shop/b", "more: ConfigMap/shop/more"}, got); diff != "" {
		t.Errorf("without its source (-want +got):\n%s", diff)
	}
	in.Sources = map[inventory.Source]artifact.Selection{
		inventory.GitRepository(client.ObjectKey{Namespace: "team", Name: "fleet"}): {Ignore: ptr.To("b.yaml"), Directories: []string{"apps"}},
	}
	got, _ = resultsOf(t, in)
	if diff := cmp.Diff([]string{"web: ConfigMap/shop/a", `more: spec.path "more": path not found in the source, which has apps`}, got); diff != "" {
		t.Errorf("with it (-want +got):\n%s", diff)
	}
}

// TestKustomizationsOfKustomizations: what others bring is built, once, and in the place of bases of its name.
func TestKustomizationsOfKustomizations(t *testing.T) {
	child := func(name, path, source string) string {
		return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: team}\nspec: {interval: 1m, prune: true, path: " + path +
			", sourceRef: {kind: GitRepository, name: " + source + "}}\n"
	}
	root := repository(t, map[string]string{
		"clusters/children.yaml": child("web", "./apps", "fleet") + child("root", "./clusters", "fleet") + child("foreign", "./x", "other"), "apps/a.yaml": config("app"),
	})
	base := kustomization("web", "./base", "fleet")
	base.Base = true
	alone := kustomization("alone", "./apps", "fleet")
	alone.Base = true
	got, _ := resultsOf(t, overlays.Input{Folder: root, Kustomizations: []overlays.Kustomization{base, kustomization("root", "./clusters", "fleet"), alone}})
	want := []string{"root: Kustomization/team/foreign Kustomization/team/root Kustomization/team/web", "root: Kustomization/team/foreign Kustomization/team/root Kustomization/team/web", "web: ConfigMap/shop/app", "alone: ConfigMap/shop/app"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVariablesOfFiles: they come from ConfigMaps and Secrets of the files; where one is missing nothing is put in.
func TestVariablesOfFiles(t *testing.T) {
	var values overlays.Values
	values.Add(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "vars"}, "data": map[string]any{"a": "one", "b": "one"}}, "team")
	values.Add(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": "team"}, "data": map[string]any{"b": "dHdv"}, "stringData": map[string]any{"c": "three"}}, "team")
	values.Add(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "sealed"}, "stringData": map[string]any{"c": "ENC[x]"}, "sops": map[string]any{}}, "team")
	values.Add(map[string]any{"apiVersion": "example.com/v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "foreign"}, "data": map[string]any{"a": "x"}}, "team")
	root := repository(t, map[string]string{"apps/a.yaml": config(`"${a:=x}-${b:=x}-${c:=x}"`)})
	for name, tc := range map[string]struct {
		refs []kustomizev1.SubstituteReference
		own  map[string]string
		want string
	}{
		"of a ConfigMap":               {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}, want: "web: ConfigMap/shop/one-one-x"},
		"of a Secret that comes later": {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}, {Kind: "Secret", Name: "token"}}, want: "web: ConfigMap/shop/one-two-three"},
		"of itself":                    {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}, own: map[string]string{"a": "own"}, want: "web: ConfigMap/shop/own-one-x"},
		"one is missing":               {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}, {Kind: "ConfigMap", Name: "token"}}, want: "web: ConfigMap/shop/${a:=x}-${b:=x}-${c:=x} without ConfigMap team/token"},
		"one that is optional is":      {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}, {Kind: "Secret", Name: "none", Optional: true}}, want: "web: ConfigMap/shop/one-one-x"},
		"one is encrypted":             {refs: []kustomizev1.SubstituteReference{{Kind: "Secret", Name: "sealed"}}, want: "web: ConfigMap/shop/${a:=x}-${b:=x}-${c:=x} without Secret team/sealed"},
		"one is of another group":      {refs: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "foreign"}}, want: "web: ConfigMap/shop/${a:=x}-${b:=x}-${c:=x} without ConfigMap team/foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			ks := kustomization("web", "apps", "fleet", func(spec *kustomizev1.KustomizationSpec) {
				spec.PostBuild = &kustomizev1.PostBuild{Substitute: tc.own, SubstituteFrom: tc.refs}
			})
			got, _ := resultsOf(t, overlays.Input{Folder: root, Kustomizations: []overlays.Kustomization{ks}, Values: values})
			if diff := cmp.Diff([]string{tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
