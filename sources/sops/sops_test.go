package sops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"gopkg.in/ini.v1"

	"github.com/flotilla-io/flotilla/sources/sops"
)

// The files in testdata are encrypted by the library of SOPS (see e2e/sops), and what it decrypts them to is beside them.

func file(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func keysOf(t testing.TB, names ...string) *sops.Keys {
	t.Helper()
	secret := map[string][]byte{"README.md": []byte("not a key")}
	for _, name := range names {
		secret[name] = file(t, name)
	}
	keys, err := sops.ParseKeys(secret)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func open(t testing.TB, content []byte, keys *sops.Keys) (sops.Plain, error) {
	t.Helper()
	sealed, err := sops.Read(content)
	if err != nil {
		return sops.Plain{}, err
	}
	if sealed == nil {
		t.Fatal("it is not taken for an encrypted file")
	}
	return sealed.Open(t.Context(), keys)
}

// inYAML returns the documents of YAML, without comments.
func inYAML(t testing.TB, content []byte) []any {
	t.Helper()
	var out []any
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var doc any
		if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, content)
		}
		out = append(out, doc)
	}
}

func inJSON(t testing.TB, content []byte) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(content, &out); err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	return out
}

func inINI(t testing.TB, content []byte) any {
	t.Helper()
	read, err := ini.Load(content)
	if err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	out := map[string]map[string]string{}
	for _, section := range read.Sections() {
		out[section.Name()] = section.KeysHash()
	}
	return out
}

func withoutComments(content []byte) any {
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

// TestFilesOfTheLibrary opens what the library encrypted, to what it decrypts that to.
func TestFilesOfTheLibrary(t *testing.T) {
	for _, name := range []string{
		"secret.yaml", "secret-pgp.yaml", "several.yaml", "values.yaml", "mac-only-encrypted.yaml", "unencrypted-regex.yaml", "comment-regex.yaml",
		"unencrypted-comment-regex.yaml", "secret.json", "values.json", "vars.env", "app.ini", "blob.bin",
	} {
		t.Run(name, func(t *testing.T) {
			plain, err := open(t, file(t, name), keysOf(t, "key.agekey", "key.asc"))
			if err != nil {
				t.Fatal(err)
			}
			want, got := any(file(t, name+".plain")), any(plain.Content)
			switch filepath.Ext(name) {
			case ".yaml":
				want, got = inYAML(t, file(t, name+".plain")), inYAML(t, plain.Content)
			case ".json":
				want, got = inJSON(t, file(t, name+".plain")), inJSON(t, plain.Content)
			case ".ini":
				want, got = inINI(t, file(t, name+".plain")), inINI(t, plain.Content)
			case ".env":
				want, got = withoutComments(file(t, name+".plain")), withoutComments(plain.Content)
			case ".bin":
				got = plain.Data
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-library +own):\n%s", diff)
			}
			if strings.Contains(string(plain.Content), "ENC[AES256_GCM,") {
				t.Errorf("something stays encrypted:\n%s", plain.Content)
			}
		})
	}
}

// TestValues names what has to be hidden of a file.
func TestValues(t *testing.T) {
	plain, err := open(t, file(t, "secret.yaml"), keysOf(t, "key.agekey"))
	want := []string{"shop", "correct: horse\nbattery 'staple'", "5432"}
	if diff := cmp.Diff(want, plain.Values); err != nil || diff != "" {
		t.Errorf("error %v, values (-want +got):\n%s", err, diff)
	}
}

// TestEncryptedEachForItself: documents of one file that were encrypted one by one, beside one that is not encrypted.
func TestEncryptedEachForItself(t *testing.T) {
	together := slices.Concat(file(t, "secret.yaml"), []byte("---\na: b\n---\n"), file(t, "secret-pgp.yaml"))
	plain, err := open(t, together, keysOf(t, "key.agekey", "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	want := inYAML(t, slices.Concat(file(t, "secret.yaml.plain"), []byte("---\na: b\n---\n"), file(t, "secret.yaml.plain")))
	if diff := cmp.Diff(want, inYAML(t, plain.Content)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func replaced(old, with string) func(string) string {
	return func(text string) string { return strings.Replace(text, old, with, 1) }
}

// TestTamperedFiles: what was changed after it was encrypted is not opened, and what is said shows nothing of it.
func TestTamperedFiles(t *testing.T) {
	swapped := func(text string) string {
		lines := strings.Split(text, "\n")
		user := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  user: ") })
		port := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  port: ") })
		lines[user], lines[port] = strings.Replace(lines[port], "port", "user", 1), strings.Replace(lines[user], "user", "port", 1)
		return strings.Join(lines, "\n")
	}
	without := func(key string) func(string) string {
		return func(text string) string {
			lines := strings.Split(text, "\n")
			return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, key) }), "\n")
		}
	}
	cases := map[string]struct {
		file   string
		change func(string) string
		want   string
	}{
		"a plain value is another":       {"secret.yaml", replaced("namespace: shop", "namespace: other"), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"a plain value is added":         {"secret.yaml", replaced("namespace: shop", "namespace: shop\n  labels: {a: b}"), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"an encrypted value is cut":      {"secret.yaml", replaced("user: ENC[AES256_GCM,data:", "user: ENC[AES256_GCM,data:AAAA"), "stringData.user was changed after it was encrypted: its authentication tag does not match; change such files with sops alone"},
		"values changed places":          {"secret.yaml", swapped, "stringData.user was changed after it was encrypted: its authentication tag does not match; change such files with sops alone"},
		"a value is not encrypted":       {"secret.yaml", replaced("user: ENC[", "user: EMC["), "stringData.user was changed after it was encrypted: it is not what SOPS writes; change such files with sops alone"},
		"a value is a number":            {"secret.yaml", replaced("user: ", "user: 1 #"), "stringData.user was changed after it was encrypted: it is no encrypted text"},
		"a value is gone":                {"secret.yaml", without("user: "), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"a document is gone":             {"several.yaml", func(text string) string { first, _, _ := strings.Cut(text, "\n---\n"); return first }, "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"the MAC is gone":                {"secret.yaml", without("mac: "), "it has no MAC: encrypt it anew with sops"},
		"the MAC is another":             {"secret.yaml", replaced("mac: ENC[AES256_GCM,data:", "mac: ENC[AES256_GCM,data:AAAA"), "its MAC was changed after it was encrypted: its authentication tag does not match; change such files with sops alone"},
		"the time is another":            {"secret.yaml", replaced("lastmodified: \"2", "lastmodified: \"1"), "its MAC was changed after it was encrypted: its authentication tag does not match; change such files with sops alone"},
		"there is no time":               {"secret.yaml", without("lastmodified"), "sops.lastmodified is no time"},
		"there are two rules":            {"secret.yaml", replaced("encrypted_regex:", "encrypted_suffix: x\n  encrypted_regex:"), "its metadata has several rules of what is encrypted"},
		"the rule is none":               {"secret.yaml", replaced("^(data", "^((data"), "sops.encrypted_regex is no regular expression"},
		"an alias":                       {"secret.yaml", replaced("name: db", "name: &a db\n  other: *a"), "it has a YAML alias, as no encrypted file has"},
		"only encrypted values count":    {"mac-only-encrypted.yaml", replaced("text_secret: ENC[", "text_secret: EMC["), "text_secret was changed after it was encrypted: it is not what SOPS writes; change such files with sops alone"},
		"the hash is said to be smaller": {"values.yaml", replaced("sops:", "sops:\n  mac_only_encrypted: true"), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"a value of JSON":                {"secret.json", replaced(`"db"`, `"dc"`), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"a variable":                     {"vars.env", replaced("SEEN_unencrypted=x", "SEEN_unencrypted=y"), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
		"a value of INI":                 {"app.ini", replaced("= x", "= y"), "it was changed after it was encrypted: its MAC does not match; change such files with sops alone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content := []byte(tc.change(string(file(t, tc.file))))
			if bytes.Equal(content, file(t, tc.file)) {
				t.Fatal("nothing was changed")
			}
			plain, err := open(t, content, keysOf(t, "key.agekey"))
			if !errors.Is(err, sops.ErrInvalid) || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if diff := cmp.Diff(sops.Plain{}, plain); err != nil && diff != "" {
				t.Errorf("with an error comes:\n%s", diff)
			}
		})
	}
}

// TestKeysThatAreMissing: another key may open the file, or none that is supported.
func TestKeysThatAreMissing(t *testing.T) {
	for name, want := range map[string]struct {
		is   error
		says string
	}{
		"other-key.yaml": {sops.ErrNoKey, "it is encrypted for age1"},
		"kms.yaml":       {sops.ErrInvalid, "it is encrypted for AWS KMS arn:aws:kms:eu-west-1:111122223333:key/0, of which none is an age or PGP key: add one with sops updatekeys"},
		"groups.yaml":    {sops.ErrInvalid, "it needs keys of several groups (key_groups), which is not supported: have one group, and sops rotate it"},
	} {
		if _, err := open(t, file(t, name), keysOf(t, "key.agekey")); !errors.Is(err, want.is) || !strings.HasPrefix(err.Error(), want.says) {
			t.Errorf("%s: error %v, want %v: %s", name, err, want.is, want.says)
		}
	}
	sealed, err := sops.Read(file(t, "secret-pgp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if said := sealed.Recipients(); !strings.HasPrefix(said, "age1") || !strings.Contains(said, ", PGP ") {
		t.Errorf("it is said to be encrypted for %s", said)
	}
}

// TestWhatIsNotEncrypted is left as it is.
func TestWhatIsNotEncrypted(t *testing.T) {
	for name, content := range map[string]string{
		"plain":                         "a: b\n",
		"an example in a text":          "data:\n  example: |\n    sops:\n      mac: ENC[AES256_GCM,data:x]\n",
		"a field of that name":          "sops: ENC[AES256_GCM,data:x]\n",
		"what an operator opens":        "kind: SopsSecret\nsops:\n  mac: ENC[AES256_GCM,data:x]\n",
		"what an operator opens, JSON":  `{"kind": "SopsSecret", "sops": {"mac": "ENC[AES256_GCM,data:x]"}}`,
		"no YAML":                       "\t- {ENC[AES256_GCM,",
		"a list":                        `["ENC[AES256_GCM,"]`,
		"large, and not encrypted":      "a: ENC[AES256_GCM,\nb: " + strings.Repeat("x", 3<<20),
		"a key of what is not a secret": "sopsy: {mac: \"ENC[AES256_GCM,\"}\n",
	} {
		if sealed, err := sops.Read([]byte(content)); sealed != nil || err != nil {
			t.Errorf("%s: it is taken for an encrypted file, error %v", name, err)
		}
	}
	if _, err := sops.Read([]byte("a: ENC[AES256_GCM,\nsops: {a: b}\nb: " + strings.Repeat("x", 3<<20))); !errors.Is(err, sops.ErrInvalid) {
		t.Errorf("a large one: error %v", err)
	}
}

func TestParseKeys(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		secret map[string]string
		want   string
	}{
		"none":               {map[string]string{"key.txt": identity.String()}, "invalid private keys: there is none: put age identities into NAME.agekey, and OpenPGP keys into NAME.asc"},
		"no identity":        {map[string]string{"a.agekey": identity.String() + "x"}, "invalid private keys: key a.agekey: it is no age identity, as age-keygen prints it"},
		"a public key":       {map[string]string{"a.agekey": identity.Recipient().String()}, "invalid private keys: key a.agekey: it is no age identity, as age-keygen prints it"},
		"one of a plugin":    {map[string]string{"a.agekey": "AGE-PLUGIN-YUBIKEY-1QQQQ"}, "invalid private keys: key a.agekey: it is an identity of a plugin, which would be a program: use one of age-keygen"},
		"no PGP key":         {map[string]string{"a.asc": "secret"}, "invalid private keys: key a.asc: it is no armored OpenPGP key, as gpg --armor --export-secret-keys prints it"},
		"a broken PGP key":   {map[string]string{"a.asc": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n"}, "invalid private keys: key a.asc: it is no armored OpenPGP key, as gpg --armor --export-secret-keys prints it"},
		"a hundred and one":  {map[string]string{"a.agekey": strings.Repeat(identity.String()+"\n", 101)}, "invalid private keys: there are more than 100, subkeys included, and each is tried: remove those that nothing is encrypted for"},
		"the first is named": {map[string]string{"b.asc": "x", "a.agekey": "x", "c.agekey": identity.String()}, "invalid private keys: key a.agekey: it is no age identity, as age-keygen prints it"},
	} {
		secret := map[string][]byte{}
		for _, key := range slices.Sorted(maps.Keys(tc.secret)) {
			secret[key] = []byte(tc.secret[key])
		}
		keys, err := sops.ParseKeys(secret)
		if keys != nil || !errors.Is(err, sops.ErrKeys) || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %s", name, err, tc.want)
		}
	}
}

// TestStanding: a file is read without a key, with stand-ins of the same kinds.
func TestStanding(t *testing.T) {
	sealed, err := sops.Read(file(t, "values.json"))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := sealed.Standing()
	want := map[string]any{
		"text": "withheld", "big": 1.0, "larger": 1.0, "float": 1.0, "exponent": 1.0, "yes": true, "nothing": nil,
		"list": []any{"withheld", 1.0, map[string]any{"b": []any{true, 1.0}}}, "number_unencrypted": 7.0, "float_unencrypted": 1000.0, "empty": "", "object": map[string]any{}, "none": []any{},
	}
	if diff := cmp.Diff(any(want), inJSON(t, plain.Content)); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// FuzzRead: no file breaks the reader, and none that was changed is opened to something else.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"secret.yaml", "several.yaml", "values.yaml", "secret.json", "vars.env", "app.ini", "blob.bin", "secret-pgp.yaml", "comment-regex.yaml"} {
		f.Add(file(f, name))
	}
	keys := keysOf(f, "key.agekey", "key.asc")
	f.Fuzz(func(t *testing.T, content []byte) {
		sealed, err := sops.Read(content)
		if err != nil || sealed == nil {
			return
		}
		_ = sealed.Recipients()
		plain, err := sealed.Open(t.Context(), keys)
		if err == nil && bytes.Contains(plain.Content, []byte("sops_mac=ENC[")) {
			t.Errorf("its metadata stays in it:\n%s", plain.Content)
		}
		if again, err := sops.Read(content); err == nil {
			_, _ = again.Standing()
		}
	})
}
