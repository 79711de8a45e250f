package notation_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/notary"
	"github.com/flotilla-io/flotilla/sources/notation"
)

const place = "registry.test/fleet"

var target = notation.Artifact{MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: "sha256:" + strings.Repeat("1", 64), Size: 345}

func must[T any](t testing.TB) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func artifact(of notation.Artifact) notary.Artifact {
	return notary.Artifact{MediaType: of.MediaType, Digest: of.Digest, Size: of.Size}
}

// TestVerify is about which signatures count, by which policy.
func TestVerify(t *testing.T) {
	ours, theirs := must[*notary.Authority](t)(notary.NewAuthority("acme")), must[*notary.Authority](t)(notary.NewAuthority("eve"))
	var revoked []*notary.Signer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/crl" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(must[[]byte](t)(ours.Revoked(revoked...)))
	}))
	defer server.Close()
	signer := func(a *notary.Authority, name string, of notary.Issue) *notary.Signer {
		return must[*notary.Signer](t)(a.Signer(name, of))
	}
	ann, ben, eve := signer(ours, "ann", notary.Issue{}), signer(ours, "ben", notary.Issue{}), signer(theirs, "ann", notary.Issue{})
	late := signer(ours, "ann", notary.Issue{Ended: true})
	good, gone := signer(ours, "ann", notary.Issue{Revocations: server.URL + "/crl"}), signer(ours, "ann", notary.Issue{Revocations: server.URL + "/crl"})
	silent := signer(ours, "ann", notary.Issue{Revocations: server.URL + "/nowhere"})
	revoked = []*notary.Signer{gone}
	sign := func(by *notary.Signer, of notation.Artifact, counts time.Duration) []byte {
		return must[[]byte](t)(by.Sign(t.Context(), artifact(of), notary.JWS, counts))
	}
	other, larger := target, target
	other.Digest = "sha256:" + strings.Repeat("2", 64)
	larger.Size++
	strict, lenient := notary.Policy("strict", place, notary.Named("ann", "acme")), notary.Policy("permissive", "*", notary.Named("ann", "acme"))
	const ends = "and it is not known that the certificate was valid then: it has ended, or an authority for times that the trust policy asks for does not say so"
	const byAnn = "CN=ann,O=acme,ST=BE,C=DE"
	for name, tc := range map[string]struct {
		policy   []byte
		envelope []byte
		cose     bool
		want     string // empty: it counts
	}{
		"who may has signed it":                       {policy: strict, envelope: sign(ann, target, 0)},
		"in COSE":                                     {policy: strict, envelope: must[[]byte](t)(ann.Sign(t.Context(), artifact(target), notary.COSE, 0)), cose: true},
		"for a time that is not over":                 {policy: strict, envelope: sign(ann, target, time.Hour)},
		"anybody of the authority may":                {policy: notary.Policy("strict", "*", "*"), envelope: sign(ben, target, 0)},
		"somebody else of the authority":              {policy: strict, envelope: sign(ben, target, 0), want: "it is signed by CN=ben,O=acme,ST=BE,C=DE, who is none of the trustedIdentities of the trust policy"},
		"the same name of another authority":          {policy: strict, envelope: sign(eve, target, 0), want: "it is signed by CN=ann,O=eve,ST=BE,C=DE, for whom no certificate of the Secret vouches"},
		"of another artifact":                         {policy: strict, envelope: sign(ann, other, 0), want: "it has a signature by " + byAnn + ", of another artifact"},
		"of one that is larger":                       {policy: strict, envelope: sign(ann, larger, 0), want: "it has a signature by " + byAnn + ", of another artifact"},
		"the certificate has ended":                   {policy: strict, envelope: sign(late, target, 0), want: "it is signed by " + byAnn + ", " + ends},
		"it has ended, which is allowed":              {policy: lenient, envelope: sign(late, target, 0)},
		"the certificate can be revoked, and is not":  {policy: strict, envelope: sign(good, target, 0)},
		"it is revoked":                               {policy: strict, envelope: sign(gone, target, 0), want: "it is signed by " + byAnn + ", and the certificate is revoked"},
		"whether it is nobody says":                   {policy: strict, envelope: sign(silent, target, 0), want: "it is signed by " + byAnn + ", and whether the certificate is revoked could not be asked: see that the servers that it names are reached, or have the trust policy skip revocation"},
		"whether it is nobody says, which is allowed": {policy: lenient, envelope: sign(silent, target, 0)},
		"it asks for a plugin":                        {policy: strict, envelope: must[[]byte](t)(ann.SignForPlugin(t.Context(), artifact(target))), want: "it is signed by " + byAnn + " in a way that needs a plugin of Notation, which is not supported"},
		"it is changed":                               {policy: strict, envelope: bytes.Replace(sign(ann, target, 0), []byte(`"signature":"`), []byte(`"signature":"AAAA`), 1), want: "it has a signature that cannot be read, or is not what was signed"},
		"it is nothing":                               {policy: strict, want: "it has a signature that cannot be read, or is not what was signed"},
		"it is said to be of another form than it is": {policy: strict, envelope: sign(ann, target, 0), cose: true, want: "it has a signature that cannot be read, or is not what was signed"},
	} {
		t.Run(name, func(t *testing.T) {
			trust, err := notation.Parse(map[string][]byte{notation.PolicyKey: tc.policy, "acme.pem": ours.Root(), "other": []byte("x")}, place, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			mediaType := notary.JWS
			if tc.cose {
				mediaType = notary.COSE
			}
			who, err := trust.Verify(t.Context(), target, tc.envelope, mediaType)
			if tc.want != "" {
				if !errors.Is(err, notation.ErrNotVerified) || notation.Why(err) != tc.want {
					t.Errorf("%v\nwant %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(who.Name, ",O=acme,ST=BE,C=DE") || who.Issuer != "CN=Root,O=acme,ST=BE,C=DE" || !trust.Has(who.Key) || time.Since(who.Signed) > time.Hour {
				t.Errorf("signed by %+v", who)
			}
		})
	}
}

// TestASignatureThatIsOver: one that counts for some time counts no longer.
func TestASignatureThatIsOver(t *testing.T) {
	ours := must[*notary.Authority](t)(notary.NewAuthority("acme"))
	ann := must[*notary.Signer](t)(ours.Signer("ann", notary.Issue{}))
	envelope := must[[]byte](t)(ann.Sign(t.Context(), artifact(target), notary.JWS, time.Second))
	trust := must[*notation.Trust](t)(notation.Parse(map[string][]byte{notation.PolicyKey: notary.Policy("strict", "*", "*"), "acme.pem": ours.Root()}, place, http.DefaultClient))
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if _, err := trust.Verify(t.Context(), target, envelope, notary.JWS); err != nil {
			if want := "it is signed by CN=ann,O=acme,ST=BE,C=DE until a time that is over"; notation.Why(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
			return
		}
	}
	t.Error("it counts for longer than it says")
}

// TestParse is about what a Secret may hold.
func TestParse(t *testing.T) {
	ours := must[*notary.Authority](t)(notary.NewAuthority("acme"))
	good := notary.Policy("strict", "*", "*")
	with := func(policy []byte, name string, content []byte) map[string][]byte {
		return map[string][]byte{notation.PolicyKey: policy, name: content}
	}
	for name, tc := range map[string]struct {
		secret map[string][]byte
		want   string
	}{
		"a policy and a root":            {with(good, "a.pem", ours.Root()), ""},
		"under the other name":           {with(good, "a.crt", ours.Root()), ""},
		"two certificates":               {with(good, "a.crt", append(ours.Root(), ours.Root()...)), ""},
		"a policy for this repository":   {with(notary.Policy("permissive", place, "*"), "a.crt", ours.Root()), ""},
		"no policy":                      {map[string][]byte{"a.pem": ours.Root()}, "there is no key trustpolicy.json"},
		"a policy that is none":          {with([]byte("[]"), "a.pem", ours.Root()), "trustpolicy.json is no trust policy in JSON, as notation policy show prints it"},
		"one that is too large":          {with(make([]byte, 65<<10), "a.pem", ours.Root()), "trustpolicy.json has more than 65536 bytes"},
		"one without statements":         {with([]byte(`{"version":"1.0"}`), "a.pem", ours.Root()), "trustpolicy.json: trust policy document can not have zero trust policy statements"},
		"one for other repositories":     {with(notary.Policy("strict", "registry.test/other", "*"), "a.pem", ours.Root()), "trustpolicy.json has no statement for registry.test/fleet: name it, or *, in registryScopes"},
		"one that only looks":            {with(notary.Policy("audit", "*", "*"), "a.pem", ours.Root()), "trustpolicy.json takes what anybody signs, as authenticity is not enforced for registry.test/fleet: set the level of signatureVerification to strict or permissive, or leave out spec.verify"},
		"one that does not even look":    {with([]byte(`{"version":"1.0","trustPolicies":[{"name":"fleet","registryScopes":["*"],"signatureVerification":{"level":"skip"}}]}`), "a.pem", ours.Root()), "trustpolicy.json takes what anybody signs, as authenticity is not enforced for registry.test/fleet: set the level of signatureVerification to strict or permissive, or leave out spec.verify"},
		"one that was made to only look": {with(bytes.Replace(good, []byte(`"level":"strict"`), []byte(`"level":"strict","override":{"authenticity":"log"}`), 1), "a.pem", ours.Root()), "trustpolicy.json takes what anybody signs, as authenticity is not enforced for registry.test/fleet: set the level of signatureVerification to strict or permissive, or leave out spec.verify"},
		"no certificate":                 {with(good, "a", ours.Root()), "there is no certificate: put that of the authority whose signatures count into NAME.pem or NAME.crt"},
		"a text for one":                 {with(good, "a.pem", []byte("CANARY")), "key a.pem: it is no certificate, in PEM or DER"},
		"a text after one":               {with(good, "a.pem", append(ours.Root(), "CANARY"...)), "key a.pem: it has something else than certificates"},
		"a private key":                  {with(good, "a.pem", must[[]byte](t)(ours.Key())), "key a.pem: it has a private key: put only certificates there, and make a new key, as others may know it now"},
		"more than there may be":         {with(good, "a.pem", bytes.Repeat(ours.Root(), 101)), "key a.pem: more than 100 certificates are too many"},
	} {
		t.Run(name, func(t *testing.T) {
			trust, err := notation.Parse(tc.secret, place, http.DefaultClient)
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), notation.ErrTrust.Error()+": ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != errors.Is(err, notation.ErrTrust) {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := trust.Verify(t.Context(), target, nil, notary.JWS); !errors.Is(err, notation.ErrNotVerified) || trust.Has("") {
				t.Errorf("nothing counts as a signature: %v", err)
			}
		})
	}
}

// FuzzVerify: whatever an envelope is that nobody signed, it does not count, and says so shortly.
func FuzzVerify(f *testing.F) {
	ours := must[*notary.Authority](f)(notary.NewAuthority("acme"))
	ann := must[*notary.Signer](f)(ours.Signer("ann", notary.Issue{}))
	for _, mediaType := range []string{notary.JWS, notary.COSE} {
		f.Add(must[[]byte](f)(ann.Sign(f.Context(), artifact(target), mediaType, time.Hour)), mediaType == notary.COSE)
	}
	theirs := must[*notary.Authority](f)(notary.NewAuthority("other"))
	trust := must[*notation.Trust](f)(notation.Parse(map[string][]byte{notation.PolicyKey: notary.Policy("strict", "*", "*"), "a.pem": theirs.Root()}, place, http.DefaultClient))
	f.Fuzz(func(t *testing.T, envelope []byte, cose bool) {
		mediaType := notary.JWS
		if cose {
			mediaType = notary.COSE
		}
		_, err := trust.Verify(t.Context(), target, envelope, mediaType)
		if !errors.Is(err, notation.ErrNotVerified) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%v", err)
		}
	})
}

// FuzzParse: whatever the Secret holds, it is read or refused.
func FuzzParse(f *testing.F) {
	ours := must[*notary.Authority](f)(notary.NewAuthority("acme"))
	f.Add(notary.Policy("strict", "*", "*"), ours.Root())
	f.Fuzz(func(t *testing.T, policy, certificate []byte) {
		_, err := notation.Parse(map[string][]byte{notation.PolicyKey: policy, "a.pem": certificate}, place, http.DefaultClient)
		if err != nil && (!errors.Is(err, notation.ErrTrust) || len(err.Error()) > 2000) {
			t.Errorf("%v", err)
		}
	})
}
