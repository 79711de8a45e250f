package builder

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/sources/build"
)

// lock encrypts fields, "path: value" each, and returns them as YAML with the metadata of SOPS, for key.agekey.
func lock(t testing.TB, of [][2]string, template string) string {
	t.Helper()
	identities, err := age.ParseIdentities(strings.NewReader(fixture(t, "key.agekey")))
	if err != nil {
		t.Fatal(err)
	}
	key := bytes.Repeat([]byte{7}, 32)
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, 32)
	if err != nil {
		t.Fatal(err)
	}
	seal := func(text, bound string) string {
		nonce := sha256.Sum256([]byte(bound))
		out := gcm.Seal(nil, nonce[:], []byte(text), []byte(bound))
		code := base64.StdEncoding.EncodeToString
		return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:str]", code(out[:len(text)]), code(nonce[:]), code(out[len(text):]))
	}
	seed := sha256.Sum256([]byte("sops"))
	hash := sha512.New()
	hash.Write(seed[:])
	for _, field := range of {
		template = strings.Replace(template, "SEALED", seal(field[1], field[0]+":"), 1)
		hash.Write([]byte(field[1]))
	}
	var wrapped strings.Builder
	armored := agearmor.NewWriter(&wrapped)
	w, err := age.Encrypt(armored, identities[0].(*age.X25519Identity).Recipient())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{func() error { _, err := w.Write(key); return err }, w.Close, armored.Close} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	const at = "2026-12-01T07:38:36Z"
	return template + "sops:\n  age:\n    - recipient: age1x\n      enc: |\n        " + strings.ReplaceAll(strings.TrimSpace(wrapped.String()), "\n", "\n        ") +
		"\n  lastmodified: \"" + at + "\"\n  encrypted_regex: ^(stringData|secret)$\n  mac_only_encrypted: true\n  mac: " + seal(fmt.Sprintf("%X", hash.Sum(nil)), at) + "\n"
}

// TestPartsOfWhatWasDecryptedAreNotReported: what stands in a value may be taken for something else, or be quoted in part.
func TestPartsOfWhatWasDecryptedAreNotReported(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  password: SEALED\n"
	long := strings.Repeat("0123456789abcdef", 100)
	patched := func(value string) map[string]string {
		return map[string]string{
			"kustomization.yaml": "resources: [c.yaml]\npatchesJson6902: [{path: patch.yaml, target: {version: v1, kind: ConfigMap, name: c}}]\n",
			"c.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
			"patch.yaml":         lock(t, [][2]string{{"secret", value}}, "secret: SEALED\n"),
		}
	}
	cases := map[string]struct {
		files  map[string]string
		want   string
		hidden []string
	}{
		"what looks like a variable": {map[string]string{"db.yaml": lock(t, [][2]string{{"stringData:password", "pa${MyP4ssw0rd}x"}}, secret)},
			"Secret db: variable substitution failed: variable not set (strict mode): a name that stands in what was decrypted; write $${ for a text that is no variable", []string{"MyP4ssw0rd"}},
		"a variable within what looks like one": {map[string]string{"db.yaml": lock(t, [][2]string{{"stringData:password", "pa${x:-${MyP4ssw0rd}}"}}, secret)},
			"Secret db: variable substitution failed: variable not set (strict mode): a name that stands in what was decrypted; write $${ for a text that is no variable", []string{"MyP4ssw0rd"}},
		"a variable beside it": {map[string]string{"db.yaml": lock(t, [][2]string{{"stringData:password", "abcdefgh"}}, strings.Replace(secret, "name: db", "name: '${region}'", 1))},
			`Secret ${region}: variable substitution failed: variable not set (strict mode): "region"; write $${ for a text that is no variable`, nil},
		"a value with several spaces": {patched("correct  horse   staple"), `"secret":"***"`, []string{"correct", "horse", "staple"}},
		"a value that is cut off":     {patched("first" + long), "***…", []string{"first", "0123456789abcdef"}},
		"one in quotes that is cut":   {patched(`fi"rst\` + long), "***…", []string{"rst", "0123456789abcdef"}},
	}
	for name, tc := range cases {
		for where, by := range map[string]*build.Builder{"here": build.New(build.Limits{}), "elsewhere": build.NewApart(build.Limits{}, elsewhere{&bytes.Buffer{}})} {
			t.Run(name+", "+where, func(t *testing.T) {
				files := map[string][]byte{"schema.json": []byte(`{"definitions": {}}`)}
				for name, content := range tc.files {
					files[name] = []byte(content)
				}
				if files["kustomization.yaml"] == nil {
					files["kustomization.yaml"] = []byte("resources: [db.yaml]\n")
				}
				files["kustomization.yaml"] = append(files["kustomization.yaml"], "openapi: {path: schema.json}\n"...)
				ks := encrypted()
				ks.Annotations = map[string]string{StrictVariablesAnnotation: "true"}
				ks.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"known": "x"}}
				_, err := FromFiles(t.Context(), by, build.NewTree(files), keyed(t, ks, "key.agekey"))
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				for _, part := range tc.hidden {
					if err != nil && strings.Contains(err.Error(), part) {
						t.Errorf("%s is told: %v", part, err)
					}
				}
			})
		}
	}
}
