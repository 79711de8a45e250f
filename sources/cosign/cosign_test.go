package cosign_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/cosigner"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/cosign"
)

var (
	digest = "sha256:" + strings.Repeat("a", 64)
	other  = "sha256:" + strings.Repeat("b", 64)
	ci     = cosigner.Identity{Issuer: "https://id.test", Subject: "https://git.test/app/.ci@main"}
)

func must[T any](t testing.TB) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// keysOf returns the trust in some keys, which a Secret calls a.pub, b.pub and so on.
func keysOf(t testing.TB, keys ...cosigner.Key) *cosign.Trust {
	t.Helper()
	secret := map[string][]byte{"README": []byte("whose keys these are")}
	for i, k := range keys {
		secret[string(rune('a'+i))+".pub"] = must[[]byte](t)(k.Public())
	}
	return must[*cosign.Trust](t)(cosign.ParseKeys(secret))
}

func rootOf(t testing.TB, s *cosigner.Sigstore, ends time.Duration, issuer, subject string) *cosign.Trust {
	t.Helper()
	identities := must[[]provenance.Matcher](t)(provenance.Matchers([]sourcev1.OIDCIdentityMatch{{Issuer: "^nobody$", Subject: ".*"}, {Issuer: issuer, Subject: subject}}))
	return must[*cosign.Trust](t)(cosign.ParseRoot(map[string][]byte{cosign.RootKey: must[[]byte](t)(s.Root(ends))}, identities))
}

// signed is a signature of either form.
type signed struct {
	bundle []byte
	simple *cosigner.Simple
}

func (s signed) judge(trust *cosign.Trust) (provenance.ArtifactSignature, error) {
	if s.simple != nil {
		return trust.Simple(digest, s.simple.Text, s.simple.Annotations)
	}
	return trust.Bundle(digest, s.bundle)
}

// TestSignatures is about which signatures count, and why others do not.
func TestSignatures(t *testing.T) {
	ann, eve := must[cosigner.Key](t)(cosigner.NewKey()), must[cosigner.Key](t)(cosigner.NewKey())
	ours, theirs := must[*cosigner.Sigstore](t)(cosigner.NewSigstore()), must[*cosigner.Sigstore](t)(cosigner.NewSigstore())
	unlogged := ci
	unlogged.Unlogged = true
	bundle := func(content []byte, err error) signed {
		t.Helper()
		return signed{bundle: must[[]byte](t)(content, err)}
	}
	simple := func(s cosigner.Simple, err error) signed {
		t.Helper()
		must[cosigner.Simple](t)(s, err)
		return signed{simple: &s}
	}
	without := func(s signed, annotation string) signed {
		changed := cosigner.Simple{Text: s.simple.Text, Annotations: maps.Clone(s.simple.Annotations)}
		delete(changed.Annotations, annotation)
		return signed{simple: &changed}
	}
	mixed := without(simple(ours.Simple(ci, digest)), "dev.sigstore.cosign/bundle")
	mixed.simple.Annotations["dev.sigstore.cosign/bundle"] = simple(ours.Simple(ci, digest)).simple.Annotations["dev.sigstore.cosign/bundle"]
	byKey, byRoot := keysOf(t, eve, ann), rootOf(t, ours, time.Hour, "^https://id.test$", "^https://git.test/app/")
	atypical := strings.Replace(string(cosigner.Text(digest)), "cosign container image signature", "atomic container signature", 1)
	const (
		otherKey = "its signature is by no key of the Secret, or of another digest"
		noLog    = "it has a signature that no log of the trusted root vouches for"
	)
	for name, tc := range map[string]struct {
		by    *cosign.Trust
		what  signed
		who   string
		wants string
	}{
		"a bundle by one of two keys":          {byKey, bundle(ann.Bundle(digest, cosigner.Sign)), "b.pub", ""},
		"a bundle by another key":              {keysOf(t, eve), bundle(ann.Bundle(digest, cosigner.Sign)), "", otherKey},
		"a bundle of another digest":           {byKey, bundle(ann.Bundle(other, cosigner.Sign)), "", otherKey},
		"a bundle of a scanner":                {byKey, bundle(ann.Bundle(digest, cosigner.Scan)), "", "it has an attestation by b.pub, which is no signature"},
		"a bundle that is none":                {byKey, signed{bundle: []byte("{}")}, "", "it has a bundle that cannot be read"},
		"a bundle by a certificate, for keys":  {byKey, bundle(ours.Bundle(ci, digest, cosigner.Sign)), "", otherKey},
		"a text by one of two keys":            {byKey, simple(ann.Simple(digest)), "b.pub", ""},
		"a text by another key":                {keysOf(t, eve), simple(ann.Simple(digest)), "", otherKey},
		"a text of another digest":             {byKey, simple(ann.Simple(other)), "", "it has a signature by b.pub, of another artifact"},
		"a text that is not about an artifact": {byKey, simple(ann.SimpleText([]byte(atypical))), "", "it has a signature by b.pub, of a text that is not about an artifact"},
		"a text without a signature":           {byKey, without(simple(ann.Simple(digest)), "dev.cosignproject.cosign/signature"), "", "it has a signature that cannot be read"},
		"no keys":                              {&cosign.Trust{}, simple(ann.Simple(digest)), "", otherKey},

		"a bundle by an identity":                            {byRoot, bundle(ours.Bundle(ci, digest, cosigner.Sign)), ci.Subject, ""},
		"a bundle by another identity":                       {rootOf(t, ours, time.Hour, "id.test", "^https://git.test/other/"), bundle(ours.Bundle(ci, digest, cosigner.Sign)), "", "it is signed by https://git.test/app/.ci@main, as https://id.test says, which spec.verify.matchOIDCIdentity does not name"},
		"a bundle by an identity of another issuer":          {rootOf(t, ours, time.Hour, "^https://other.test$", "app"), bundle(ours.Bundle(ci, digest, cosigner.Sign)), "", "it is signed by https://git.test/app/.ci@main, as https://id.test says, which spec.verify.matchOIDCIdentity does not name"},
		"a bundle by an identity of another root":            {byRoot, bundle(theirs.Bundle(ci, digest, cosigner.Sign)), "", noLog},
		"a bundle by an identity of a root that has expired": {rootOf(t, ours, -time.Hour, "", ""), bundle(ours.Bundle(ci, digest, cosigner.Sign)), "", "it is signed with a certificate of no authority that the trusted root had when it was signed"},
		"a bundle by a certificate that is not logged":       {byRoot, bundle(ours.Bundle(unlogged, digest, cosigner.Sign)), "", "it is signed with a certificate that no certificate log of the trusted root vouches for"},
		"a bundle by an identity, of another digest":         {byRoot, bundle(ours.Bundle(ci, other, cosigner.Sign)), "", "it has a signature that is not by its certificate, or of something else"},
		"a bundle by an identity, of a scanner":              {byRoot, bundle(ours.Bundle(ci, digest, cosigner.Scan)), "", "it has an attestation by https://git.test/app/.ci@main, which is no signature"},
		"a bundle by a key, for identities":                  {byRoot, bundle(ann.Bundle(digest, cosigner.Sign)), "", noLog},
		"a text by an identity":                              {byRoot, simple(ours.Simple(ci, digest)), ci.Subject, ""},
		"a text by an identity, of another digest":           {byRoot, simple(ours.Simple(ci, other)), "", "it has a signature by https://git.test/app/.ci@main, of another artifact"},
		"a text by an identity of another root":              {byRoot, simple(theirs.Simple(ci, digest)), "", noLog},
		"a text by an identity that is not logged":           {byRoot, without(simple(ours.Simple(ci, digest)), "dev.sigstore.cosign/bundle"), "", noLog},
		"a text with the entry of another":                   {byRoot, mixed, "", noLog},
		"a text by a certificate that is not logged":         {byRoot, simple(ours.Simple(unlogged, digest)), "", "it is signed with a certificate that no certificate log of the trusted root vouches for"},
		"a text by a key, for identities":                    {byRoot, simple(ann.Simple(digest)), "", "it is signed without a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := tc.what.judge(tc.by)
			if tc.wants != "" {
				if !errors.Is(err, cosign.ErrNotVerified) || cosign.Why(err) != tc.wants || who != (provenance.ArtifactSignature{}) {
					t.Errorf("signed by %+v, error %v, want %s", who, err, tc.wants)
				}
				return
			}
			if err != nil || who.Name != tc.who || !tc.by.Has(who.Key) {
				t.Errorf("signed by %+v, error %v, want %s", who, err, tc.who)
			}
			if keyless := tc.who == ci.Subject; keyless != (who.Issuer == ci.Issuer) || keyless == who.Signed.IsZero() {
				t.Errorf("signed by %+v", who)
			}
		})
	}
	if byKey.Has("") || byRoot.Has("") || byRoot.Has("SHA256:x") || (&cosign.Trust{}).Has("") {
		t.Error("a key that is none counts")
	}
}

// TestATamperedBundle: a bundle of which one byte of what is signed, or of the signature, is another counts no more.
func TestATamperedBundle(t *testing.T) {
	ann := must[cosigner.Key](t)(cosigner.NewKey())
	content := must[[]byte](t)(ann.Bundle(digest, cosigner.Sign))
	var whole map[string]any
	if err := json.Unmarshal(content, &whole); err != nil {
		t.Fatal(err)
	}
	envelope := whole["dsseEnvelope"].(map[string]any)
	trust := keysOf(t, ann)
	for name, statement := range map[string][]byte{
		"as it is":       cosigner.Statement(digest, cosigner.Sign),
		"another digest": cosigner.Statement(other, cosigner.Sign),
		"another space":  append(cosigner.Statement(digest, cosigner.Sign), ' '),
	} {
		envelope["payload"] = base64.StdEncoding.EncodeToString(statement)
		changed := must[[]byte](t)(json.Marshal(whole))
		if _, err := trust.Bundle(digest, changed); (err == nil) != (name == "as it is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeys is about what a Secret may hold.
func TestKeys(t *testing.T) {
	ann := must[cosigner.Key](t)(cosigner.NewKey())
	public := must[[]byte](t)(ann.Public())
	const begins = "invalid public keys: "
	for name, tc := range map[string]struct {
		secret map[string][]byte
		want   string
	}{
		"a key":            {map[string][]byte{"cosign.pub": public, "notes": []byte("x")}, ""},
		"none":             {map[string][]byte{"cosign.key": public}, begins + "there is none: put those that cosign generate-key-pair writes into NAME.pub"},
		"something else":   {map[string][]byte{"a.pub": []byte("ssh-ed25519 AAAA")}, begins + "key a.pub: it is no public key in PEM, as cosign public-key prints it"},
		"a private key":    {map[string][]byte{"a.pub": []byte("-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n")}, begins + "key a.pub: it is a private key: put only the public one there, and make a new one, as others may know it now"},
		"two in one":       {map[string][]byte{"a.pub": append(append([]byte{}, public...), public...)}, begins + "key a.pub: it is more than one key: give each a name of its own"},
		"a certificate":    {map[string][]byte{"a.pub": []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, begins + "key a.pub: it is no public key, but something else in PEM"},
		"bytes":            {map[string][]byte{"a.pub": []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")}, begins + "key a.pub: it cannot be read as a public key"},
		"a mistake beside": {map[string][]byte{"a.pub": public, "b.pub": nil}, begins + "key b.pub: it is no public key in PEM, as cosign public-key prints it"},
		"a short RSA key":  {map[string][]byte{"a.pub": []byte(shortRSA)}, begins + "key a.pub: it is an RSA key of 1024 bits: make one of 2048 to 8192"},
	} {
		trust, err := cosign.ParseKeys(tc.secret)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tc.want || trust == nil || tc.want != "" && !errors.Is(err, cosign.ErrKeys) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	trust, _ := cosign.ParseKeys(map[string][]byte{"a.pub": public, "b.pub": nil})
	simple := must[cosigner.Simple](t)(ann.Simple(digest))
	who, err := trust.Simple(digest, simple.Text, simple.Annotations)
	if err != nil || !trust.Has(who.Key) {
		t.Errorf("a mistake beside a key takes that away as well: %v", err)
	}
}

// shortRSA is an RSA key of 1024 bits.
const shortRSA = `-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDYwWv7dYlyOBnBzVTqofRcnWDy
IfBwO/XjgMcNujCOMck+UzB4l+HHfMF2aWwXbrhs37Z/ya9qYyoL4bPCYs/qXSsT
+NN58hgbCafsYFE6bgLpCVUoLH56O8NJ6Q6XSwzecmy/4yeV9a9vDbezqkXvMLh2
Py/sJ6O6beeXFjZiawIDAQAB
-----END PUBLIC KEY-----
`

// TestRoot is about what a Secret may hold as a trusted root.
func TestRoot(t *testing.T) {
	ours := must[*cosigner.Sigstore](t)(cosigner.NewSigstore())
	text := must[[]byte](t)(ours.Root(time.Hour))
	dropped := func(field string) []byte {
		var whole map[string]any
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		delete(whole, field)
		return must[[]byte](t)(json.Marshal(whole))
	}
	const begins = "invalid trusted root: "
	got := map[string]string{}
	for name, content := range map[string][]byte{
		"a root": text, "nothing": nil, "something else": []byte(`{"mediaType":"x"}`), "too much": make([]byte, 1<<20),
		"without authorities": dropped("certificateAuthorities"), "without logs": dropped("tlogs"),
	} {
		trust, err := cosign.ParseRoot(map[string][]byte{cosign.RootKey: content}, nil)
		if got[name] = ""; err != nil {
			got[name] = err.Error()
		}
		if trust == nil || err != nil && !errors.Is(err, cosign.ErrKeys) {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := map[string]string{
		"a root": "", "nothing": begins + "it has no key trusted_root.json",
		"something else":      begins + "trusted_root.json is no trusted root of Sigstore, as cosign trusted-root create writes it",
		"too much":            begins + "trusted_root.json has more than 524288 bytes",
		"without authorities": begins + "trusted_root.json has no certificate authority, so that it vouches for nobody",
		"without logs":        begins + "trusted_root.json has no transparency log, which has to have each signature",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzSignatures checks that no bytes that nobody signed count, whatever they are, and that the error repeats none of them.
func FuzzSignatures(f *testing.F) {
	ours, eve := must[*cosigner.Sigstore](f)(cosigner.NewSigstore()), must[cosigner.Key](f)(cosigner.NewKey())
	simple := must[cosigner.Simple](f)(ours.Simple(ci, other))
	f.Add(must[[]byte](f)(ours.Bundle(ci, other, cosigner.Sign)), "", "", "")
	f.Add(must[[]byte](f)(eve.Bundle(digest, cosigner.Sign)), "", "", "")
	f.Add(simple.Text, simple.Annotations["dev.cosignproject.cosign/signature"], simple.Annotations["dev.sigstore.cosign/certificate"], simple.Annotations["dev.sigstore.cosign/bundle"])
	all := []*cosign.Trust{rootOf(f, ours, time.Hour, ".*", ".*"), keysOf(f, must[cosigner.Key](f)(cosigner.NewKey()))}
	f.Fuzz(func(t *testing.T, content []byte, sig, certificate, entry string) {
		for _, trust := range all {
			_, err := trust.Bundle(digest, content)
			_, simpleErr := trust.Simple(digest, content, map[string]string{
				"dev.cosignproject.cosign/signature": sig, "dev.sigstore.cosign/certificate": certificate, "dev.sigstore.cosign/bundle": entry, "dev.sigstore.cosign/rfc3161timestamp": entry,
			})
			for _, err := range []error{err, simpleErr} {
				if !errors.Is(err, cosign.ErrNotVerified) || len(err.Error()) > 600 {
					t.Errorf("what nobody signed: %v", err)
				}
			}
		}
	})
}

// FuzzTrust checks that what a Secret holds is read or refused, whatever it is.
func FuzzTrust(f *testing.F) {
	f.Add(must[[]byte](f)(must[*cosigner.Sigstore](f)(cosigner.NewSigstore()).Root(time.Hour)))
	f.Add(must[[]byte](f)(must[cosigner.Key](f)(cosigner.NewKey()).Public()))
	f.Fuzz(func(t *testing.T, content []byte) {
		_, keys := cosign.ParseKeys(map[string][]byte{"a.pub": content})
		_, root := cosign.ParseRoot(map[string][]byte{cosign.RootKey: content}, nil)
		for _, err := range []error{keys, root} {
			if err != nil && (!errors.Is(err, cosign.ErrKeys) || len(err.Error()) > 200) {
				t.Errorf("%v", err)
			}
		}
	})
}
