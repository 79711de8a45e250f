package ocirepository_test

import (
	"net/http"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/notary"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

// TestVerifyByNotation walks through the life of a source that asks for signatures of Notation.
func TestVerifyByNotation(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	ours, theirs := must[*notary.Authority](t)(notary.NewAuthority("acme")), must[*notary.Authority](t)(notary.NewAuthority("eve"))
	ann, ben, eve := must[*notary.Signer](t)(ours.Signer("ann", notary.Issue{})), must[*notary.Signer](t)(ours.Signer("ben", notary.Issue{})), must[*notary.Signer](t)(theirs.Signer("eve", notary.Issue{}))
	lists := 0
	b.registry.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/crl" {
			return false
		}
		lists++
		_, _ = w.Write(must[[]byte](t)(ours.Revoked()))
		return true
	})
	revocable := must[*notary.Signer](t)(ours.Signer("ann", notary.Issue{Revocations: b.server.URL + "/crl"}))
	var digest string
	push := func(content string) { digest = b.push("latest", map[string]string{"app.yaml": content}) }
	sign := func(mediaType string, all ...*notary.Signer) {
		t.Helper()
		var out []ociserver.Envelope
		of := notary.Artifact{MediaType: ociserver.Manifest, Digest: digest, Size: b.size(digest)}
		for _, by := range all {
			out = append(out, ociserver.Envelope{MediaType: mediaType, Content: must[[]byte](t)(by.Sign(t.Context(), of, mediaType, 0))})
		}
		if err := b.registry.PushEnvelopes(t.Context(), "app", digest, out...); err != nil {
			t.Fatal(err)
		}
	}
	trusts := func(a *notary.Authority, identity string) {
		b.holds(map[string][]byte{"trustpolicy.json": notary.Policy("strict", b.host()+"/app", identity), "acme.crt": a.Root()})
	}
	asks := func(s *sourcev1.OCIRepositorySpec) {
		s.Verify = &sourcev1.OCIRepositoryVerification{Provider: "notation", SecretRef: &meta.LocalObjectReference{Name: "signers"}}
	}
	const (
		by     = "verified: artifact signed by CN=ann,O=acme,ST=BE,C=DE, as CN=Root,O=acme,ST=BE,C=DE says"
		isNot  = "latest@DIGEST is not verified: "
		byBen  = isNot + "it is signed by CN=ben,O=acme,ST=BE,C=DE, who is none of the trustedIdentities of the trust policy"
		gone   = "the Secret shop/signers of spec.verify.secretRef is not there: create it with trustpolicy.json and the certificates of who may sign"
		policy = "Secret shop/signers: invalid trust policy: there is no key trustpolicy.json"
	)
	push("one")
	b.create(asks)
	b.reconcile() // nothing is stored yet
	sign(notary.JWS, ann)
	trusts(ours, notary.Named("ann", "acme"))
	b.walk([]step{
		{"it is signed", func() {}, outcome{verified, by, "one", true}},
		{"the next one is not", func() { push("two") }, outcome{refused, isNot + "it has no signature of Notation", "one", true}},
		{"it is by somebody else", func() { sign(notary.JWS, ben) }, outcome{refused, byBen, "one", true}},
		{"of two signatures one counts", func() { sign(notary.COSE, ben, ann) }, outcome{verified, by, "two", true}},
		{"the next one is by a stranger", func() { push("three"); sign(notary.JWS, eve) }, outcome{refused, isNot + "it is signed by CN=eve,O=eve,ST=BE,C=DE, for whom no certificate of the Secret vouches", "two", true}},
		{"by a certificate that can be revoked", func() { sign(notary.JWS, revocable) }, outcome{verified, by, "three", true}},
		{"somebody else may sign in place of who did", func() { trusts(ours, notary.Named("ben", "acme")) }, outcome{refused, isNot + "it is signed by CN=ann,O=acme,ST=BE,C=DE, who is none of the trustedIdentities of the trust policy", "three", false}},
		{"and he may again", func() { trusts(ours, notary.Named("ann", "acme")) }, outcome{verified, by, "three", true}},
		{"the Secret is gone for a while", func() { b.holds(nil) }, outcome{refused, gone, "three", true}},
		{"it has no policy", func() { b.holds(map[string][]byte{"acme.crt": ours.Root()}) }, outcome{refused, policy, "three", false}},
		{"the authority is another one", func() { trusts(theirs, "*") }, outcome{refused, isNot + "it is signed by CN=ann,O=acme,ST=BE,C=DE, for whom no certificate of the Secret vouches", "three", false}},
		{"and the first again", func() { trusts(ours, "*") }, outcome{verified, by, "three", true}},
		{"cosign is asked for instead", func() { b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Verify.Provider = "cosign" }) },
			outcome{refused, "Secret shop/signers: invalid public keys: there is none: put those that cosign generate-key-pair writes into NAME.pub", "three", false}},
	})
	if lists == 0 {
		t.Error("nobody asked whether the certificate is revoked")
	}
}

// size returns how long the manifest of a digest is.
func (b *bench) size(digest string) int64 {
	b.t.Helper()
	req := must[*http.Request](b.t)(http.NewRequestWithContext(b.t.Context(), http.MethodHead, b.server.URL+"/v2/app/manifests/"+digest, nil))
	resp := must[*http.Response](b.t)(http.DefaultClient.Do(req))
	_ = resp.Body.Close()
	return resp.ContentLength
}
