package builder

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/build"
)

// TestEncryptedFilesOfTwoUses: a ConfigMap has an encrypted file as it is, and all else has it decrypted and its hash checked.
// Who asks for both of one file is refused, whatever comes first: kustomize does not say for what it reads a file.
func TestEncryptedFilesOfTwoUses(t *testing.T) {
	const (
		own    = "openapi: {path: schema.json}\n" // what no other build may see
		config = "configMapGenerator: [{name: c, files: [../db.yaml]}]\n"
		secret = "secretGenerator: [{name: s, files: [../db.yaml]}]\n"
		patch  = "resources: [plain.yaml]\npatches: [{path: ../db.yaml}]\n"
		plain  = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\n"
	)
	cases := map[string]map[string]string{
		"a resource, then a ConfigMap of a base":          {"app/kustomization.yaml": "resources: [../db.yaml, ../base]\n", "base/kustomization.yaml": config},
		"a ConfigMap of a base, then a resource":          {"app/kustomization.yaml": "resources: [../base, ../db.yaml]\n", "base/kustomization.yaml": config},
		"a resource and a ConfigMap":                      {"app/kustomization.yaml": "resources: [../db.yaml]\n" + config},
		"a resource of one base, a ConfigMap of another":  {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": "resources: [../db.yaml]\n", "other/kustomization.yaml": config},
		"a ConfigMap of one base, a resource of another":  {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": config, "other/kustomization.yaml": "resources: [../db.yaml]\n"},
		"a patch, then a ConfigMap":                       {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": patch, "base/plain.yaml": plain, "other/kustomization.yaml": config},
		"a ConfigMap, then a patch":                       {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": config, "other/kustomization.yaml": patch, "other/plain.yaml": plain},
		"a Secret and a ConfigMap":                        {"app/kustomization.yaml": secret + config},
		"a Secret of one base, a ConfigMap of another":    {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": secret, "other/kustomization.yaml": config},
		"a ConfigMap of one base, a Secret of another":    {"app/kustomization.yaml": "resources: [../base, ../other]\n", "base/kustomization.yaml": config, "other/kustomization.yaml": secret},
		"variables of a Secret and a file of a ConfigMap": {"app/kustomization.yaml": "secretGenerator: [{name: s, envs: [../db.yaml]}]\n" + config},
		"a ConfigMap by a path that leads above the root": {"app/kustomization.yaml": "resources: [../db.yaml]\nconfigMapGenerator: [{name: c, files: [../../../db.yaml]}]\n"},
		"a ConfigMap of a plugin":                         {"app/kustomization.yaml": "resources: [../db.yaml]\ngenerators: [c.yaml]\n", "app/c.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: c}\nfiles: [../db.yaml]\n"},
	}
	changed := strings.Replace(fixture(t, "secret.yaml"), "namespace: shop", "namespace: other", 1)
	for name, given := range cases {
		for where, by := range map[string]*build.Builder{"here": build.New(build.Limits{}), "elsewhere": build.NewApart(build.Limits{}, elsewhere{&bytes.Buffer{}})} {
			for what, content := range map[string]string{"as it was encrypted": fixture(t, "secret.yaml"), "changed": changed} {
				t.Run(name+", "+what+", "+where, func(t *testing.T) {
					files := map[string][]byte{"db.yaml": []byte(content), "app/schema.json": []byte(`{"definitions": {}}`)}
					for name, content := range given {
						files[name] = []byte(content)
					}
					files["app/kustomization.yaml"] = append(files["app/kustomization.yaml"], own...)
					ks := encrypted()
					ks.Spec.Path = "./app"
					objects, err := FromFiles(t.Context(), by, build.NewTree(files), keyed(t, ks, "key.agekey"))
					if what == "changed" && err != nil && strings.Contains(err.Error(), "db.yaml: cannot be decrypted: it was changed") {
						return
					}
					const want = "db.yaml: not allowed: it is encrypted, and used by a configMapGenerator, which takes it as it is, and by something for which it is decrypted: have a copy of it for one of them"
					if !errors.Is(err, build.ErrRefused) || err.Error() != want {
						t.Errorf("error %v, want %s; built:\n%s", err, want, inText(t, objects))
					}
				})
			}
		}
	}
}

// TestConfigMapsHaveEncryptedFilesAsTheyAre, however the file is named: nobody asked for what is in it to be shown.
func TestConfigMapsHaveEncryptedFilesAsTheyAre(t *testing.T) {
	want := "apiVersion: v1\ndata:\n  a.txt: |\n    " + strings.ReplaceAll(strings.TrimSpace(fixture(t, "vars.env")), "\n", "\n    ") + "\nkind: ConfigMap\nmetadata:\n  name: c\n"
	for name, given := range map[string]map[string]string{
		"of a plugin":                      {"kustomization.yaml": "generators: [c.yaml]\n", "c.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: c}\nfiles: [a.txt]\noptions: {disableNameSuffixHash: true}\n"},
		"by a path that leads above":       {"kustomization.yaml": "configMapGenerator: [{name: c, files: [../a.txt], options: {disableNameSuffixHash: true}}]\n"},
		"used twice by configMapGenerator": {"kustomization.yaml": "resources: [base]\nconfigMapGenerator: [{name: c, behavior: replace, files: [a.txt], options: {disableNameSuffixHash: true}}]\n", "base/kustomization.yaml": "configMapGenerator: [{name: c, files: [../a.txt], options: {disableNameSuffixHash: true}}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{"a.txt": []byte(fixture(t, "vars.env"))}
			for name, content := range given {
				files[name] = []byte(content)
			}
			objects, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(files), keyed(t, encrypted(), "key.agekey"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, inText(t, objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
