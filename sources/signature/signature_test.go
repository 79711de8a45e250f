package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

var (
	made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now  = made.AddDate(0, 6, 0)
)

func at(t time.Time) *packet.Config { return &packet.Config{Time: func() time.Time { return t }} }

// entity makes an OpenPGP key that lives for a time; zero for ever.
func entity(t testing.TB, lives time.Duration) *openpgp.Entity {
	t.Helper()
	config := at(made)
	config.KeyLifetimeSecs = uint32(lives.Seconds())
	config.Algorithm = packet.PubKeyAlgoEdDSA
	e, err := openpgp.NewEntity("Ann", "", "ann@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func public(t testing.TB, kind string, serialize func(*bytes.Buffer) error) []byte {
	t.Helper()
	var raw, out bytes.Buffer
	if err := serialize(&raw); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&out, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

func ring(t testing.TB, e *openpgp.Entity) []byte {
	t.Helper()
	return public(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return e.Serialize(b) })
}

func signPGP(t testing.TB, e *openpgp.Entity, text string, config *packet.Config) string {
	t.Helper()
	var out bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&out, e, strings.NewReader(text), config); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// weakly returns a signature of the SHA-1 of a text, as old programs made them.
func weakly(t testing.TB, e *openpgp.Entity, text string) string {
	t.Helper()
	key, ok := e.SigningKey(now)
	if !ok {
		t.Fatal("no key")
	}
	sig := &packet.Signature{Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: key.PublicKey.PubKeyAlgo, Hash: crypto.SHA1, CreationTime: made.AddDate(0, 0, 7), IssuerKeyId: &key.PublicKey.KeyId}
	h := crypto.SHA1.New()
	h.Write([]byte(text))
	if err := sig.Sign(h, key.PrivateKey, &packet.Config{NonDeterministicSignaturesViaNotation: packet.BoolPointer(false)}); err != nil {
		t.Fatal(err)
	}
	return string(public(t, openpgp.SignatureType, func(b *bytes.Buffer) error { return sig.Serialize(b) }))
}

func signer(t testing.TB, key crypto.Signer) ssh.Signer {
	t.Helper()
	s, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ed(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer(t, key)
}

func signSSH(t testing.TB, s ssh.Signer, text, namespace string) string {
	t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(text), s, sshsig.HashSHA512, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return string(sshsig.Armor(sig))
}

func line(s ssh.Signer, comment string) []byte {
	return append(append(bytes.TrimSpace(ssh.MarshalAuthorizedKey(s.PublicKey())), ' '), []byte(comment+"\n")...)
}

// TestVerify is about who signed, and why it does not count.
func TestVerify(t *testing.T) {
	const text = "tree 4b825dc\n\nsubject\n"
	ann, other, brief := entity(t, 0), entity(t, 0), entity(t, 30*24*time.Hour)
	bob, stranger := ed(t), ed(t)
	revoked := entity(t, 0)
	signed := made.AddDate(0, 0, 7)
	prolonged := entity(t, 30*24*time.Hour)
	early := signPGP(t, prolonged, text, at(signed))
	lasts(t, prolonged, 0, made.AddDate(0, 0, 20))
	before := signPGP(t, revoked, text, at(made.AddDate(0, 1, 0)))
	if err := revoked.RevokeKey(packet.KeyCompromised, "stolen", at(made.AddDate(0, 2, 0))); err != nil {
		t.Fatal(err)
	}
	keys, err := Parse(map[string][]byte{
		"ann.asc": ring(t, ann), "two.asc": append(append(ring(t, brief), ring(t, revoked)...), ring(t, prolonged)...),
		"bob.sshpub": append([]byte("# the team\n\n"), line(bob, "bob@laptop")...),
	})
	if err != nil {
		t.Fatal(err)
	}
	annKey, bobKey := fingerprintOf(ann.PrimaryKey), ssh.FingerprintSHA256(bob.PublicKey())
	for name, tc := range map[string]struct {
		text, signature string
		want            Signer
		err             string
	}{
		"with an OpenPGP key":                         {text, signPGP(t, ann, text, at(signed)), Signer{annKey, "Ann <ann@example.com>", signed}, ""},
		"with one that was prolonged since":           {text, early, Signer{fingerprintOf(prolonged.PrimaryKey), "Ann <ann@example.com>", signed}, ""},
		"with an SSH key":                             {text, signSSH(t, bob, text, "git"), Signer{Key: bobKey, Name: "bob@laptop"}, ""},
		"with white space around the signature":       {text, "\n" + signSSH(t, bob, text, "git") + "\n\n", Signer{Key: bobKey, Name: "bob@laptop"}, ""},
		"another text, OpenPGP":                       {text + "x", signPGP(t, ann, text, at(signed)), Signer{}, "its OpenPGP signature does not fit, or is damaged"},
		"another text, SSH":                           {text + "x", signSSH(t, bob, text, "git"), Signer{}, "its SSH signature does not fit"},
		"with an OpenPGP key of others":               {text, signPGP(t, other, text, at(signed)), Signer{}, "it is signed by the OpenPGP key " + fingerprintOf(other.PrimaryKey) + ", which is not among those of the Secret"},
		"with an SSH key of others":                   {text, signSSH(t, stranger, text, "git"), Signer{}, "it is signed by the SSH key " + ssh.FingerprintSHA256(stranger.PublicKey()) + ", which is not among those of the Secret"},
		"an SSH signature of a file":                  {text, signSSH(t, bob, text, "file"), Signer{}, "its SSH signature was made for something else than Git"},
		"with a key that has expired since":           {text, signPGP(t, brief, text, at(signed)), Signer{}, "it is signed by the OpenPGP key " + fingerprintOf(brief.PrimaryKey) + ", which is revoked or has expired: put a valid one into the Secret"},
		"with a key that is revoked now":              {text, before, Signer{}, "it is signed by the OpenPGP key " + fingerprintOf(revoked.PrimaryKey) + ", which is revoked or has expired: put a valid one into the Secret"},
		"with SHA-1":                                  {text, weakly(t, ann, text), Signer{}, "its OpenPGP signature is too weak: sign with SHA-256 or better, and no short or DSA key"},
		"by nobody":                                   {text, "", Signer{}, "it is not signed"},
		"with a certificate":                          {text, x509Begin + "\nMII\n", Signer{}, "it is signed with an X.509 certificate (S/MIME), which is not supported: sign with an OpenPGP or SSH key"},
		"with something else":                         {text, "-----BEGIN TEA-----", Signer{}, "its signature is of no known kind"},
		"an SSH signature that is cut off":            {text, sshBegin + "\nU1NIU0lH\n", Signer{}, "its SSH signature is damaged"},
		"an OpenPGP signature that is cut off":        {text, pgpBegin + "\n\nU1N\n", Signer{}, "its OpenPGP signature is damaged"},
		"an OpenPGP signature from after the present": {text, signPGP(t, ann, text, at(now.AddDate(1, 0, 0))), Signer{}, "its OpenPGP signature has expired, or is from a time to come"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := keys.Verify([]byte(tc.text), tc.signature, now)
			if tc.err != "" {
				if !errors.Is(err, ErrNotVerified) || err.Error() != "not verified: "+tc.err {
					t.Errorf("%v, %+v; want %s", err, got, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got.Signed = got.Signed.UTC()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, tc := range map[string]struct {
		key  string
		at   time.Time
		want bool
	}{
		"an OpenPGP key":           {annKey, now, true},
		"an SSH key":               {bobKey, now, true},
		"one that has expired":     {fingerprintOf(brief.PrimaryKey), now, false},
		"one that had not, then":   {fingerprintOf(brief.PrimaryKey), signed, true},
		"one that is revoked":      {fingerprintOf(revoked.PrimaryKey), now, false},
		"one of others":            {fingerprintOf(other.PrimaryKey), now, false},
		"one of others, SSH":       {ssh.FingerprintSHA256(stranger.PublicKey()), now, false},
		"a subkey for encryption":  {fingerprintOf(ann.Subkeys[0].PublicKey), now, false},
		"nothing, of nobody's key": {"", now, false},
	} {
		if got := keys.Has(tc.key, tc.at); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// TestParse is about Secrets that do not hold public keys.
func TestParse(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // refused
	if err != nil {
		t.Fatal(err)
	}
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := entity(t, 0), ed(t)
	private := public(t, openpgp.PrivateKeyType, func(b *bytes.Buffer) error { return ann.SerializePrivate(b, nil) })
	for name, tc := range map[string]struct {
		secret map[string][]byte
		want   string
	}{
		"each kind":                            {map[string][]byte{"a.asc": ring(t, ann), "b.sshpub": append(line(signer(t, strong), ""), line(signer(t, curve), "")...)}, ""},
		"another end":                          {map[string][]byte{"a.gpg": ring(t, ann)}, ""},
		"none":                                 {nil, "invalid public keys: there is none: put OpenPGP keys into NAME.asc, and SSH keys into NAME.sshpub"},
		"a comment only":                       {map[string][]byte{"b.sshpub": []byte("# nobody\n")}, "invalid public keys: there is none: put OpenPGP keys into NAME.asc, and SSH keys into NAME.sshpub"},
		"no armor":                             {map[string][]byte{"a.asc": []byte("secret words")}, "invalid public keys: key a.asc: it is no armored OpenPGP key, as gpg --armor --export prints it"},
		"a signature":                          {map[string][]byte{"a.asc": []byte(signPGP(t, ann, "x", nil))}, "invalid public keys: key a.asc: it is no armored OpenPGP key, as gpg --armor --export prints it"},
		"a second one is damaged":              {map[string][]byte{"a.asc": append(ring(t, ann), ring(t, ann)[:200]...)}, "invalid public keys: key a.asc: it is no armored OpenPGP key, as gpg --armor --export prints it"},
		"a private SSH key":                    {map[string][]byte{"b.sshpub": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")}, "invalid public keys: key b.sshpub: it is a private key: put only the public one there, and make a new one, as others may know it now"},
		"a private SSH key under another name": {map[string][]byte{"id": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")}, "invalid public keys: key id: it is a private key: put only the public one there, and make a new one, as others may know it now"},
		"an SSH key under another name":        {map[string][]byte{"id_ed25519.pub": line(bob, "bob")}, "invalid public keys: key id_ed25519.pub: it is an SSH key: name it NAME.sshpub"},
		"a private one":                        {map[string][]byte{"a.asc": private}, "invalid public keys: key a.asc: it is a private key: put only the public one there, and make a new one, as others may know it now"},
		"a short RSA key":                      {map[string][]byte{"b.sshpub": line(signer(t, weak), "")}, "invalid public keys: key b.sshpub: line 1: an RSA key needs 2048 bits"},
		"options":                              {map[string][]byte{"b.sshpub": append([]byte("cert-authority "), line(bob, "")...)}, `invalid public keys: key b.sshpub: line 1 has options before the key, such as "cert-authority", which are not looked at: remove them`},
		"no key in the second":                 {map[string][]byte{"b.sshpub": append(line(bob, ""), "secret words\n"...)}, "invalid public keys: key b.sshpub: line 2 is no public SSH key, as in authorized_keys"},
		"empty":                                {map[string][]byte{"b.sshpub": {}}, "invalid public keys: key b.sshpub: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.secret)
			got := ""
			if err != nil {
				got = err.Error()
				if !errors.Is(err, ErrKeys) {
					t.Errorf("not ErrKeys: %v", err)
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// FuzzVerify feeds signatures that a committer may send, and keys that a tenant may write.
func FuzzVerify(f *testing.F) {
	ann, bob := entity(f, 0), ed(f)
	f.Add("text", signPGP(f, ann, "text", at(made)), ring(f, ann), line(bob, "x"))
	f.Add("text", signSSH(f, bob, "text", "git"), ring(f, ann), line(bob, "x"))
	keys, err := Parse(map[string][]byte{"ann.asc": ring(f, ann), "bob.sshpub": line(bob, "x")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, signature string, pgp, ssh []byte) {
		if who, err := keys.Verify([]byte(text), signature, now); err == nil && text != "text" {
			t.Errorf("%q counts as signed by %+v", text, who)
		}
		if other, err := Parse(map[string][]byte{"a.asc": pgp, "b.sshpub": ssh}); err == nil {
			_, _ = other.Verify([]byte(text), signature, now)
			_ = other.Has(signature, now)
		}
	})
}
