package main

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hcvault"
	sopskeys "github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"
	"github.com/getsops/sops/v3/pgp"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
)

//go:embed plain
var plain embed.FS

// fixture is a file to encrypt.
type fixture struct {
	name, from string
	store      sops.Store
	metadata   sops.Metadata
	keys       func(keys) []sops.KeyGroup
}

// keys are the recipients of the files, of which the tests have the private halves of the first two.
type keys struct {
	age, other *age.X25519Identity
	pgp        *openpgp.Entity
	private    []byte // of pgp, armored
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sops FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string) error {
	k, err := newKeys(folder)
	if err != nil {
		return err
	}
	for _, f := range fixtures() {
		if err := f.write(folder, k); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func fixtures() []fixture {
	asYAML := yaml.NewStore(&config.YAMLStoreConfig{Indent: 2})
	asJSON := json.NewStore(&config.JSONStoreConfig{Indent: -1})
	onlyAge := func(k keys) []sops.KeyGroup { return []sops.KeyGroup{{k.forAge(k.age)}} }
	suffix := sops.Metadata{UnencryptedSuffix: sops.DefaultUnencryptedSuffix}
	data := sops.Metadata{EncryptedRegex: "^(data|stringData)$"}
	return []fixture{
		{"secret.yaml", "secret.yaml", asYAML, data, onlyAge},
		{"secret-pgp.yaml", "secret.yaml", asYAML, data, func(k keys) []sops.KeyGroup { return []sops.KeyGroup{{k.forAge(k.other), k.forPGP()}} }},
		{"secret.json", "secret.json", asJSON, data, onlyAge},
		{"several.yaml", "several.yaml", asYAML, data, onlyAge},
		{"values.yaml", "values.yaml", asYAML, suffix, onlyAge},
		{"values.json", "values.json", asJSON, suffix, onlyAge},
		{"mac-only-encrypted.yaml", "values.yaml", asYAML, sops.Metadata{EncryptedSuffix: "_secret", MACOnlyEncrypted: true}, onlyAge},
		{"unencrypted-regex.yaml", "values.yaml", asYAML, sops.Metadata{UnencryptedRegex: "^(plain|list)"}, onlyAge},
		{"comment-regex.yaml", "comments.yaml", asYAML, sops.Metadata{EncryptedCommentRegex: "sops:enc"}, onlyAge},
		{"unencrypted-comment-regex.yaml", "comments.yaml", asYAML, sops.Metadata{UnencryptedCommentRegex: "sops:enc"}, onlyAge},
		{"vars.env", "vars.env", dotenv.NewStore(&config.DotenvStoreConfig{}), suffix, onlyAge},
		{"app.ini", "app.ini", ini.NewStore(&config.INIStoreConfig{}), suffix, onlyAge},
		{"blob.bin", "blob.bin", json.NewBinaryStore(&config.JSONBinaryStoreConfig{Indent: -1}), suffix, onlyAge},
		{"other-key.yaml", "secret.yaml", asYAML, data, func(k keys) []sops.KeyGroup { return []sops.KeyGroup{{k.forAge(k.other)}} }},
		{"kms.yaml", "secret.yaml", asYAML, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{forKMS()}} }},
		{"vault.yaml", "secret.yaml", asYAML, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[0]()}} }},
		{"vault.json", "secret.json", asJSON, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[0]()}} }},
		{"aws.yaml", "secret.yaml", asYAML, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[1]()}} }},
		{"aws.env", "vars.env", dotenv.NewStore(&config.DotenvStoreConfig{}), suffix, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[1]()}} }},
		{"gcp.yaml", "secret.yaml", asYAML, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[2]()}} }},
		{"azure.yaml", "secret.yaml", asYAML, data, func(keys) []sops.KeyGroup { return []sops.KeyGroup{{services[3]()}} }},
		{"groups.yaml", "secret.yaml", asYAML, data, func(k keys) []sops.KeyGroup { return []sops.KeyGroup{{k.forAge(k.age)}, {k.forAge(k.other)}} }},
	}
}

func newKeys(folder string) (keys, error) {
	var k keys
	var err error
	if k.age, err = age.GenerateX25519Identity(); err != nil {
		return k, err
	}
	if k.other, err = age.GenerateX25519Identity(); err != nil {
		return k, err
	}
	if k.pgp, err = openpgp.NewEntity("fixture", "", "fixture@example.com", nil); err != nil {
		return k, err
	}
	var private bytes.Buffer
	out, err := armor.Encode(&private, openpgp.PrivateKeyType, nil)
	if err != nil {
		return k, err
	}
	if err := k.pgp.SerializePrivate(out, nil); err != nil {
		return k, err
	}
	if err := out.Close(); err != nil {
		return k, err
	}
	k.private = private.Bytes()
	if err := os.WriteFile(filepath.Join(folder, "key.asc"), append(private.Bytes(), '\n'), 0o600); err != nil {
		return k, err
	}
	text := fmt.Sprintf("# public key: %s\n%s\n", k.age.Recipient(), k.age)
	return k, os.WriteFile(filepath.Join(folder, "key.agekey"), []byte(text), 0o600)
}

func (keys) forAge(to *age.X25519Identity) *sopsage.MasterKey {
	return &sopsage.MasterKey{Recipient: to.Recipient().String()}
}

func (k keys) forPGP() *pgp.MasterKey {
	return pgp.NewMasterKeyFromFingerprint(fmt.Sprintf("%X", k.pgp.PrimaryKey.Fingerprint))
}

// services are keys that services hold, by the order in fixtures.
var services = []func() sopskeys.MasterKey{
	func() sopskeys.MasterKey {
		return hcvault.NewMasterKey("https://vault.example.com:8200", "teams/shop", "flux")
	},
	func() sopskeys.MasterKey {
		team := "shop"
		return kms.NewMasterKey("arn:aws:kms:eu-west-1:111122223333:key/9b1d", "", map[string]*string{"team": &team})
	},
	func() sopskeys.MasterKey {
		return gcpkms.NewMasterKeyFromResourceID("projects/shop/locations/global/keyRings/flux/cryptoKeys/files")
	},
	func() sopskeys.MasterKey { return azkv.NewMasterKey("https://shop.vault.azure.net", "files", "0123") },
}

func forKMS() *kms.MasterKey {
	return kms.NewMasterKey("arn:aws:kms:eu-west-1:111122223333:key/0", "", nil)
}

// wrap encrypts the key of a file for a recipient.
func (k keys) wrap(to any, part []byte) error {
	switch to := to.(type) {
	case *sopsage.MasterKey:
		return to.Encrypt(part)
	case *kms.MasterKey:
		if len(to.EncryptionContext) == 0 {
			to.SetEncryptedDataKey([]byte("none"))
			return nil
		}
		to.SetEncryptedDataKey(sealed(base64.StdEncoding, "aws:", part))
	case *hcvault.MasterKey:
		to.SetEncryptedDataKey(append([]byte("vault:v1:"), sealed(base64.StdEncoding, "", part)...))
	case *gcpkms.MasterKey:
		to.SetEncryptedDataKey(sealed(base64.StdEncoding, "gcp:", part))
	case *azkv.MasterKey:
		to.SetEncryptedDataKey(sealed(base64.RawURLEncoding, "azure:", part))
	case *pgp.MasterKey:
		message, err := k.byGPG(part)
		if err != nil {
			return err
		}
		to.SetEncryptedDataKey(message)
	}
	return nil
}

// sealed is what the services of the tests of sources/keyservice open: they encrypt nothing.
func sealed(by *base64.Encoding, mark string, part []byte) []byte {
	return []byte(by.EncodeToString(append([]byte(mark), part...)))
}

// byGPG encrypts with gpg, as the library does.
func (k keys) byGPG(part []byte) ([]byte, error) {
	home, err := os.MkdirTemp("", "sops-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	for _, step := range []struct {
		args []string
		in   []byte
	}{
		{[]string{"--import"}, k.private},
		{[]string{"--trust-model", "always", "--armor", "--recipient", "fixture@example.com", "--encrypt"}, part},
	} {
		gpg := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--no-default-recipient"}, step.args...)...)
		gpg.Stdin, gpg.Stderr = bytes.NewReader(step.in), os.Stderr
		out, err := gpg.Output()
		if err != nil {
			return nil, err
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, errors.New("gpg wrote nothing")
}

func (f fixture) write(folder string, k keys) error {
	content, err := plain.ReadFile("plain/" + f.from)
	if err != nil {
		return err
	}
	branches, err := f.store.LoadPlainFile(content)
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	tree := sops.Tree{Branches: branches, Metadata: f.metadata}
	tree.Metadata.KeyGroups = f.keys(k)
	for _, group := range tree.Metadata.KeyGroups {
		for _, to := range group {
			if err := k.wrap(to, key); err != nil {
				return err
			}
		}
	}
	cipher := aes.NewCipher()
	mac, err := tree.Encrypt(key, cipher)
	if err != nil {
		return err
	}
	tree.Metadata.LastModified = time.Now().UTC()
	tree.Metadata.Version = "3.13.3"
	if tree.Metadata.MessageAuthenticationCode, err = cipher.Encrypt(mac, key, tree.Metadata.LastModified.Format(time.RFC3339)); err != nil {
		return err
	}
	encrypted, err := f.store.EmitEncryptedFile(tree)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, f.name), encrypted, 0o600); err != nil {
		return err
	}
	return f.decrypted(folder, encrypted, key)
}

// decrypted writes what the library makes of the encrypted file.
func (f fixture) decrypted(folder string, encrypted, key []byte) error {
	tree, err := f.store.LoadEncryptedFile(encrypted)
	if err != nil {
		return err
	}
	if _, err := tree.Decrypt(key, aes.NewCipher()); err != nil {
		return err
	}
	out, err := f.store.EmitPlainFile(tree.Branches)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, f.name+".plain"), out, 0o600)
}
