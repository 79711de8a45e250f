package builder

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/build"
)

// fixture reads a file that the library of SOPS wrote (see e2e/sops).
func fixture(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "sources", "sops", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// elsewhere builds everything as another process would: what it is given passes through a stream.
type elsewhere struct{ given *bytes.Buffer }

func (e elsewhere) Run(ctx context.Context, job build.Job) ([][]byte, error) {
	if err := gob.NewEncoder(e.given).Encode(job); err != nil {
		return nil, err
	}
	var read build.Job
	if err := gob.NewDecoder(bytes.NewReader(e.given.Bytes())).Decode(&read); err != nil {
		return nil, err
	}
	objects, err := build.New(read.Limits).Build(ctx, read.Input)
	var out [][]byte
	for _, obj := range objects {
		text, err := json.Marshal(obj.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, err
}

// encrypted is a Kustomization whose key is in the Secret sops.
func encrypted() *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	ks.Spec.Decryption = &kustomizev1.Decryption{Provider: "sops", SecretRef: &meta.LocalObjectReference{Name: "sops"}}
	return ks
}

// keyed returns an Input whose account reads a Secret with these keys.
func keyed(t testing.TB, ks *kustomizev1.Kustomization, keys ...string) Input {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sops"}, Data: map[string][]byte{}}
	for _, name := range keys {
		secret.Data[name] = []byte(fixture(t, name))
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret).Build()
	return Input{Kustomization: ks, As: hub, Retry: time.Minute}
}

// inText returns objects without the labels of their owner, and their Secrets in plain.
func inText(t testing.TB, objects []*unstructured.Unstructured) string {
	t.Helper()
	var out []string
	for _, obj := range objects {
		obj.SetLabels(nil)
		unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
		if data, _ := obj.Object["data"].(map[string]any); obj.GetKind() == "Secret" {
			for key, value := range data {
				plain, err := base64.StdEncoding.DecodeString(value.(string))
				if err != nil {
					t.Fatal(err)
				}
				data[key] = string(plain)
			}
		}
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

const decryptedDB = `apiVersion: v1
data:
  empty: ""
  password: |-
    correct: horse
    battery 'staple'
  port: "5432"
  user: shop
kind: Secret
metadata:
  name: db
  namespace: shop
`

// TestEncryptedFiles builds files as they were before they were encrypted, in this process and elsewhere.
func TestEncryptedFiles(t *testing.T) {
	encoded := func(file string) string { return base64.StdEncoding.EncodeToString([]byte(fixture(t, file))) }
	cases := map[string]struct {
		files map[string]string
		want  string
	}{
		"a manifest":                 {map[string]string{"db.yaml": fixture(t, "secret.yaml")}, decryptedDB},
		"one for an OpenPGP key":     {map[string]string{"db.yaml": fixture(t, "secret-pgp.yaml")}, decryptedDB},
		"one that operators decrypt": {map[string]string{"a.yaml": "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: a}\nsops: {mac: \"ENC[AES256_GCM,x]\"}\n"}, "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata:\n  name: a\nsops:\n  mac: ENC[AES256_GCM,x]\n"},
		"a patch": {map[string]string{
			"kustomization.yaml": "resources: [db.yaml]\npatches: [{path: patch.yaml}]\n", "patch.yaml": fixture(t, "secret.yaml"),
			"db.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {user: other, b: c}\n",
		}, strings.Replace(decryptedDB, "  empty: \"\"", "  b: c\n  empty: \"\"", 1)},
		"variables of a generator": {map[string]string{
			"kustomization.yaml": "secretGenerator: [{name: vars, envs: [vars.env], options: {disableNameSuffixHash: true}}]\n", "vars.env": fixture(t, "vars.env"),
		}, "apiVersion: v1\ndata:\n  EMPTY: \"\"\n  LINES: one\\ntwo\n  PASSWORD: a=b \"c\" $d\n  SEEN_unencrypted: x\n  USER: shop\nkind: Secret\nmetadata:\n  name: vars\ntype: Opaque\n"},
		"INI": {map[string]string{
			"kustomization.yaml": "secretGenerator: [{name: f, files: [app.ini], options: {disableNameSuffixHash: true}}]\n", "app.ini": fixture(t, "app.ini"),
		}, "apiVersion: v1\ndata:\n  app.ini: " + "\"top = level\\n\\n[db]\\nuser             = shop\\npassword         = a\\nquoted\n    \\          = \\\"  spaced  \\\"\\nlines            = \\\"\\\"\\\"one\\ntwo\\\"\\\"\\\"\\nempty            =\n    \\nseen_unencrypted = x\\n\"" + "\nkind: Secret\nmetadata:\n  name: f\ntype: Opaque\n"},
		"a file that a Secret holds": {map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {vars.env: " + encoded("vars.env") + "}\n"},
			"apiVersion: v1\ndata:\n  vars.env: |\n    USER=shop\n    PASSWORD=a=b \"c\" $d\n    LINES=one\\ntwo\n    EMPTY=\n    SEEN_unencrypted=x\nkind: Secret\nmetadata:\n  name: a\n"},
		"a ConfigMap has it as it is": {map[string]string{
			"kustomization.yaml": "configMapGenerator: [{name: c, files: [a.txt], options: {disableNameSuffixHash: true}}]\n", "a.txt": fixture(t, "vars.env"),
		}, "apiVersion: v1\ndata:\n  a.txt: |\n    " + strings.ReplaceAll(strings.TrimSpace(fixture(t, "vars.env")), "\n", "\n    ") + "\nkind: ConfigMap\nmetadata:\n  name: c\n"},
	}
	for name, tc := range cases {
		for where, by := range map[string]*build.Builder{"here": build.New(build.Limits{}), "elsewhere": build.NewApart(build.Limits{}, elsewhere{&bytes.Buffer{}})} {
			t.Run(name+", "+where, func(t *testing.T) {
				files := map[string][]byte{}
				for name, content := range tc.files {
					files[name] = []byte(content)
				}
				if where == "elsewhere" { // a schema of its own is what no other build may see
					kustomization := "resources: [" + strings.Join(slices.Sorted(maps.Keys(tc.files)), ", ") + "]\n"
					if own := tc.files["kustomization.yaml"]; own != "" {
						kustomization = own
					}
					files["kustomization.yaml"], files["schema.json"] = []byte(kustomization+"openapi: {path: schema.json}\n"), []byte(`{"definitions": {}}`)
				}
				objects, err := FromFiles(t.Context(), by, build.NewTree(files), keyed(t, encrypted(), "key.agekey", "key.asc"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, inText(t, objects)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestBinaryFile: what is of no format is in a Secret as it was, and as JSON where its name says so.
func TestBinaryFile(t *testing.T) {
	files := map[string][]byte{
		"kustomization.yaml": []byte("secretGenerator: [{name: f, files: [token=blob.bin], options: {disableNameSuffixHash: true}}]\n"),
		"blob.bin":           []byte(fixture(t, "blob.bin")),
	}
	objects, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(files), keyed(t, encrypted(), "key.agekey"))
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedString(objects[0].Object, "data", "token")
	if want := base64.StdEncoding.EncodeToString([]byte(fixture(t, "blob.bin.plain"))); got != want {
		t.Errorf("the Secret has %s, want %s", got, want)
	}
}

// TestFilesThatCannotBeDecrypted are refused as a whole, by name.
func TestFilesThatCannotBeDecrypted(t *testing.T) {
	const next = "set spec.decryption.provider to sops, and secretRef to a Secret with the private key as NAME.agekey or NAME.asc"
	unset, unnamed := encrypted(), encrypted()
	unset.Spec.Decryption = nil
	unnamed.Spec.Decryption.SecretRef = nil
	absent := encrypted()
	absent.Spec.Decryption.SecretRef.Name = "other"
	db := map[string]string{"db.yaml": fixture(t, "secret.yaml")}
	cases := map[string]struct {
		files map[string]string
		of    *kustomizev1.Kustomization
		keys  []string
		class loop.Class
		want  []string
	}{
		"no decryption is asked for": {db, unset, nil, loop.ClassStalled, []string{"db.yaml: cannot be decrypted: it is encrypted with SOPS for age1", "and spec.decryption is not set: " + next}},
		"no Secret is named":         {db, unnamed, nil, loop.ClassStalled, []string{"db.yaml: cannot be decrypted: it is encrypted with SOPS for age1", "spec.decryption.secretRef is not set"}},
		"the Secret is missing":      {db, absent, nil, loop.ClassWaiting, []string{"spec.decryption.secretRef: the Secret team/other does not exist: create it"}},
		"the Secret has no key":      {db, encrypted(), nil, loop.ClassWaiting, []string{"spec.decryption.secretRef: the Secret team/sops: invalid private keys: there is none"}},
		"the key is another": {db, encrypted(), []string{"key.asc"}, loop.ClassWaiting, []string{
			"db.yaml: no key decrypts it: it is encrypted for age1", "and the Secret team/sops has the private key of PGP ", "add the one that is missing, or add a recipient with sops updatekeys",
		}},
		"it was changed": {map[string]string{"db.yaml": strings.Replace(fixture(t, "secret.yaml"), "namespace: shop", "namespace: other", 1)}, encrypted(), []string{"key.agekey"}, loop.ClassStalled,
			[]string{"db.yaml: cannot be decrypted: it was changed after it was encrypted: its MAC does not match"}},
		"a variable was changed": {map[string]string{
			"kustomization.yaml": "secretGenerator: [{name: vars, envs: [vars.env]}]\n", "vars.env": strings.Replace(fixture(t, "vars.env"), "=x\n", "=y\n", 1),
		}, encrypted(), []string{"key.agekey"}, loop.ClassStalled, []string{"vars.env: cannot be decrypted: it was changed"}},
		"what a Secret holds was changed": {map[string]string{
			"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {x: " + base64.StdEncoding.EncodeToString([]byte(strings.Replace(fixture(t, "vars.env"), "=x\n", "=y\n", 1))) + "}\n",
		}, encrypted(), []string{"key.agekey"}, loop.ClassStalled, []string{"Secret/a: data.x: cannot be decrypted: it was changed"}},
	}
	for name, tc := range cases {
		for where, by := range map[string]*build.Builder{"here": build.New(build.Limits{}), "elsewhere": build.NewApart(build.Limits{}, elsewhere{&bytes.Buffer{}})} {
			t.Run(name+", "+where, func(t *testing.T) {
				files := map[string][]byte{}
				for name, content := range tc.files {
					files[name] = []byte(content)
				}
				in := keyed(t, tc.of, tc.keys...)
				_, err := FromFiles(t.Context(), by, build.NewTree(files), in)
				var is *loop.Error
				if !errors.As(classifyBuild(in, err), &is) || is.Class != tc.class || is.Reason != meta.BuildFailedReason {
					t.Fatalf("error %#v, want class %v", is, tc.class)
				}
				for _, part := range tc.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %v, want %s", err, part)
					}
				}
			})
		}
	}
}

// TestNothingDecryptedIsReported: kustomize quotes what it cannot use, and that may be what was encrypted. The keys stay in this
// process, and what other objects have of it marks them.
func TestNothingDecryptedIsReported(t *testing.T) {
	given := &bytes.Buffer{}
	files := map[string][]byte{
		"kustomization.yaml": []byte("resources: [db.yaml, c.yaml]\nopenapi: {path: schema.json}\n"), "schema.json": []byte(`{"definitions": {}}`),
		"db.yaml": []byte(fixture(t, "secret.yaml")), "c.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: x-shop-x, b: shop}\n"),
	}
	revealed := map[string]bool{}
	in := keyed(t, encrypted(), "key.agekey")
	in.Reveal = func(text string) { revealed[text] = true }
	objects, err := FromFiles(t.Context(), build.NewApart(build.Limits{}, elsewhere{given}), build.NewTree(files), in)
	if err != nil {
		t.Fatal(err)
	}
	marks := map[string]string{}
	for _, obj := range objects {
		marks[obj.GetName()] = obj.GetAnnotations()["kustomize.flotilla.io/holds-secrets"]
	}
	if diff := cmp.Diff(map[string]string{"db": "", "c": "fields"}, marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"shop": true, "5432": true, "correct: horse\nbattery 'staple'": true}, revealed); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	if bytes.Contains(given.Bytes(), []byte("AGE-SECRET-KEY-")) {
		t.Error("another process is given the key")
	}

	files["kustomization.yaml"] = []byte("resources: [c.yaml]\npatchesJson6902: [{path: patch.yaml, target: {version: v1, kind: ConfigMap, name: c}}]\n")
	files["patch.yaml"] = []byte(fixture(t, "values.yaml"))
	_, err = FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(files), keyed(t, encrypted(), "key.agekey"))
	if err == nil || !strings.Contains(err.Error(), `"text_secret":"***"`) {
		t.Fatalf("it is told: %v, which does not quote the patch", err)
	}
	for _, value := range []string{"läuft", "first", "9223372036854775807", "1e+21", "2026-12-01"} {
		if strings.Contains(err.Error(), value) {
			t.Errorf("%s is told: %v", value, err)
		}
	}
}

// TestWithoutKeys: files are read with stand-ins where nobody has the key.
func TestWithoutKeys(t *testing.T) {
	var met []string
	in := Input{Kustomization: encrypted(), Encrypted: func(file string) { met = append(met, file) }}
	objects, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(map[string][]byte{"db.yaml": []byte(fixture(t, "secret.yaml"))}), in)
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v1\ndata:\n  empty: \"\"\n  password: withheld\n  port: withheld\n  user: withheld\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\n"
	if diff := cmp.Diff(want, inText(t, objects)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"db.yaml"}, met); diff != "" {
		t.Errorf("encrypted files (-want +got):\n%s", diff)
	}
}

// TestWhatIsCalledInPlainText: names and namespaces that an encrypted file has in plain text stay, and no others.
func TestWhatIsCalledInPlainText(t *testing.T) {
	var spared []string
	in := keyed(t, encrypted(), "key.agekey")
	in.Spare = func(text string) { spared = append(spared, text) }
	files := build.NewTree(map[string][]byte{
		"db.yaml":    []byte(fixture(t, "secret.yaml")),
		"other.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hidden, namespace: elsewhere}\n"),
	})
	if _, err := FromFiles(t.Context(), build.New(build.Limits{}), files, in); err != nil {
		t.Fatal(err)
	}
	slices.Sort(spared)
	want := []string{"Secret/shop/", "Secret/shop/db", `namespace "shop"`, `namespaces "shop"`, "the namespace shop"}
	if diff := cmp.Diff(want, slices.Compact(spared)); diff != "" {
		t.Errorf("spared (-want +got):\n%s", diff)
	}
}
