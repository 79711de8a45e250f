package ocirepository_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/cosigner"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
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

// holds writes the Secret of spec.verify; without data it removes it.
func (b *bench) holds(data map[string][]byte) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "signers"}}
	if err := client.IgnoreNotFound(b.hub.Delete(b.t.Context(), secret)); err != nil {
		b.t.Fatal(err)
	}
	if secret.Data = data; data == nil {
		return
	}
	secret.ResourceVersion = ""
	b.add(secret)
}

// keys writes that Secret with the public halves of some keys.
func (b *bench) keys(keys map[string]cosigner.Key) {
	b.t.Helper()
	data := map[string][]byte{}
	for name, k := range keys {
		data[name] = must[[]byte](b.t)(k.Public())
	}
	b.holds(data)
}

// texts and bundles push signatures of the artifact of a digest, in place of those that there are.
func (b *bench) texts(digest string, all ...cosigner.Simple) {
	b.t.Helper()
	var out []ociserver.Text
	for _, s := range all {
		out = append(out, ociserver.Text{Content: s.Text, Annotations: s.Annotations})
	}
	if err := b.registry.PushTexts(b.t.Context(), "app", digest, out...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) bundles(digest string, all ...[]byte) {
	b.t.Helper()
	if err := b.registry.PushBundles(b.t.Context(), "app", digest, all...); err != nil {
		b.t.Fatal(err)
	}
}

func byKeys() *sourcev1.OCIRepositoryVerification {
	return &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: &meta.LocalObjectReference{Name: "signers"}}
}

func byIdentity(subject string) *sourcev1.OCIRepositoryVerification {
	return &sourcev1.OCIRepositoryVerification{
		Provider: "cosign", TrustedRootSecretRef: &meta.LocalObjectReference{Name: "signers"},
		MatchOIDCIdentity: []sourcev1.OIDCIdentityMatch{{Issuer: "^nobody$", Subject: "^nobody$"}, {Issuer: "^https://id.test$", Subject: subject}},
	}
}

// outcome is what one run of the loop left behind.
type outcome struct {
	Conditions []string
	// Says is the message of SourceVerified, with DIGEST and KEY for what differs from run to run.
	Says string
	// Artifact is what is in it, and MayBuild whether a Kustomization may build it.
	Artifact string
	MayBuild bool
}

var (
	fingerprint = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`)
	revision    = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

func (b *bench) outcome() outcome {
	b.t.Helper()
	object := b.object()
	out := outcome{Conditions: conditions(object), MayBuild: provenance.UnverifiedArtifact(object) == ""}
	if object.Status.Artifact != nil {
		out.Artifact = b.files()["app.yaml"]
	}
	if c := apimeta.FindStatusCondition(object.Status.Conditions, sourcev1.SourceVerifiedCondition); c != nil {
		out.Says = revision.ReplaceAllString(fingerprint.ReplaceAllString(c.Message, "KEY"), "DIGEST")
	}
	return out
}

var (
	plainly  = []string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded"}
	verified = []string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded", "SourceVerified=True Succeeded"}
	refused  = []string{"ArtifactInStorage=True Succeeded", "Ready=False VerificationError", "Reconciling=True ProgressingWithRetry", "SourceVerified=False VerificationError"}
)

type step struct {
	what   string
	change func()
	want   outcome
}

// ends reports whether the Event ends what was told of a fault: by a new artifact, or by word of who signed the one that there was.
func (b *bench) ends() bool {
	return strings.HasPrefix(b.events[0], "Normal NewArtifact: ") ||
		strings.HasPrefix(b.events[0], "Normal Succeeded: works again: the artifact of ") && strings.Contains(b.events[0], ", and verified: artifact signed by ")
}

// walk takes a source through some steps.
func (b *bench) walk(steps []step) {
	b.t.Helper()
	failed := false
	for _, s := range steps {
		b.events = nil
		s.change()
		b.reconcile()
		if diff := cmp.Diff(s.want, b.outcome()); diff != "" {
			b.t.Fatalf("%s (-want +got):\n%s", s.what, diff)
		}
		told := len(b.events) == 1 && strings.HasPrefix(b.events[0], "Warning VerificationError")
		if strings.Contains(s.want.Says, " is not verified: ") && !told {
			b.t.Errorf("%s: of an artifact that is refused the Events say %q", s.what, b.events)
		}
		if mended := failed && s.want.Says != "" && slices.Contains(s.want.Conditions, "Ready=True Succeeded"); mended && !(len(b.events) == 1 && b.ends()) {
			b.t.Errorf("%s: of an artifact that is verified again the Events say %q", s.what, b.events)
		}
		failed = slices.Contains(s.want.Conditions, "Ready=False VerificationError")
		b.writes, b.events = 0, nil
		if b.reconcile(); b.writes != 0 || len(b.events) != 0 {
			b.t.Errorf("%s: the next run wrote %d times, with the Events %v", s.what, b.writes, b.events)
		}
	}
}

// TestVerifyByKeys walks through the life of a source that asks for signatures by keys.
func TestVerifyByKeys(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	newKey := func() cosigner.Key { return must[cosigner.Key](t)(cosigner.NewKey()) }
	text := func(k cosigner.Key, digest string) cosigner.Simple {
		return must[cosigner.Simple](t)(k.Simple(digest))
	}
	ann, eve := newKey(), newKey()
	var digest, before string
	push := func(content string) {
		before = digest
		digest = b.push("latest", map[string]string{"app.yaml": content})
	}
	asks := func(v *sourcev1.OCIRepositoryVerification) {
		b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Verify = v })
	}
	const (
		gone     = "the Secret shop/signers of spec.verify.secretRef is not there: create it with the public keys whose signatures count"
		unsigned = "latest@DIGEST is not verified: it has no signature of cosign"
		otherKey = "latest@DIGEST is not verified: its signature is by no key of the Secret, or of another digest"
		mistaken = "Secret shop/signers: invalid public keys: key b.pub: it is no public key in PEM, as cosign public-key prints it"
	)
	by := func(name string) string { return "verified: artifact signed by the key " + name + " (KEY)" }
	push("one")
	b.create(nil)
	b.walk([]step{
		{"nothing is asked for", func() {}, outcome{plainly, "", "one", true}},
		{"signatures are, and there is no Secret", func() { asks(byKeys()) }, outcome{refused, gone, "one", false}},
		{"it is not signed", func() { b.keys(map[string]cosigner.Key{"ann.pub": ann}) }, outcome{refused, unsigned, "one", false}},
		{"it is signed afterwards", func() { b.texts(digest, text(ann, digest)) }, outcome{verified, by("ann.pub"), "one", true}},
		{"the next one is not", func() { push("two") }, outcome{refused, unsigned, "one", true}},
		{"somebody else signs it", func() { b.texts(digest, text(eve, digest)) }, outcome{refused, otherKey, "one", true}},
		{"and a signature of the one before is copied to it", func() { b.texts(digest, text(ann, before)) }, outcome{refused, "latest@DIGEST is not verified: it has a signature by ann.pub, of another artifact", "one", true}},
		{"of two signatures one counts", func() { b.texts(digest, text(eve, digest), text(ann, digest)) }, outcome{verified, by("ann.pub"), "two", true}},
		{"the next one has a bundle of somebody else", func() {
			push("three")
			b.bundles(digest, must[[]byte](t)(eve.Bundle(digest, cosigner.Sign)))
		}, outcome{refused, otherKey, "two", true}},
		{"whose key is taken in", func() { b.keys(map[string]cosigner.Key{"ann.pub": ann, "eve.pub": eve}) }, outcome{verified, by("eve.pub"), "three", true}},
		{"and taken away again", func() { b.keys(map[string]cosigner.Key{"ann.pub": ann}) }, outcome{refused, otherKey, "three", false}},
		{"the report of a scanner is no signature", func() { b.bundles(digest, must[[]byte](t)(ann.Bundle(digest, cosigner.Scan))) }, outcome{refused, "latest@DIGEST is not verified: it has an attestation by ann.pub, which is no signature", "three", false}},
		{"a bundle, and a text that counts", func() {
			b.bundles(digest, must[[]byte](t)(eve.Bundle(digest, cosigner.Sign)))
			b.texts(digest, text(ann, digest))
		}, outcome{verified, by("ann.pub"), "three", true}},
		{"the Secret is gone for a while", func() { b.holds(nil) }, outcome{refused, gone, "three", true}},
		{"another one is named, which is not there", func() {
			b.keys(map[string]cosigner.Key{"ann.pub": ann})
			other := byKeys()
			other.SecretRef.Name = "others"
			asks(other)
		}, outcome{refused, strings.Replace(gone, "signers", "others", 1), "three", false}},
		{"the first is named again", func() { asks(byKeys()) }, outcome{verified, by("ann.pub"), "three", true}},
		{"identities are named beside it", func() {
			both := byKeys()
			both.MatchOIDCIdentity = byIdentity(".").MatchOIDCIdentity
			asks(both)
		}, outcome{[]string{"ArtifactInStorage=True Succeeded", "Ready=False VerificationError", "SourceVerified=False VerificationError", "Stalled=True VerificationError"},
			"spec.verify has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only", "three", false}},
		{"and left out again", func() { asks(byKeys()) }, outcome{verified, by("ann.pub"), "three", true}},
		{"it has a mistake beside the key", func() {
			b.holds(map[string][]byte{"ann.pub": must[[]byte](t)(ann.Public()), "b.pub": nil})
		}, outcome{refused, mistaken, "three", true}},
		{"and the key is gone from it", func() {
			b.holds(map[string][]byte{"ann.pub": must[[]byte](t)(eve.Public()), "b.pub": nil})
		}, outcome{refused, mistaken, "three", false}},
		{"the key is back", func() { b.keys(map[string]cosigner.Key{"ann.pub": ann}) }, outcome{verified, by("ann.pub"), "three", true}},
		{"nothing is asked for any more", func() { asks(nil) }, outcome{plainly, "", "three", true}},
		{"an identity is, in place of a key", func() { asks(byIdentity(".")) }, outcome{refused, "Secret shop/signers: invalid trusted root: it has no key trusted_root.json", "three", false}},
	})
}

// TestVerifyByIdentity walks through the life of a source that asks for signatures by somebody whom a trusted root vouches for.
func TestVerifyByIdentity(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	newSigstore := func() *cosigner.Sigstore { return must[*cosigner.Sigstore](t)(cosigner.NewSigstore()) }
	ours, theirs := newSigstore(), newSigstore()
	ci := cosigner.Identity{Issuer: "https://id.test", Subject: "https://git.test/app/.ci@main"}
	eve := cosigner.Identity{Issuer: "https://id.test", Subject: "https://git.test/eve/.ci@main"}
	root := func(s *cosigner.Sigstore, ends time.Duration) {
		b.holds(map[string][]byte{"trusted_root.json": must[[]byte](t)(s.Root(ends))})
	}
	var digest string
	push := func(content string) { digest = b.push("latest", map[string]string{"app.yaml": content}) }
	sign := func(s *cosigner.Sigstore, by cosigner.Identity) {
		b.bundles(digest, must[[]byte](t)(s.Bundle(by, digest, cosigner.Sign)))
	}
	const (
		by      = "verified: artifact signed by https://git.test/app/.ci@main, as https://id.test says"
		expired = "latest@DIGEST is not verified: it is signed with a certificate of no authority that the trusted root had when it was signed"
	)
	push("one")
	sign(ours, ci)
	root(ours, time.Hour)
	b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byIdentity("^https://git.test/app/") })
	b.walk([]step{
		{"it is signed", func() {}, outcome{verified, by, "one", true}},
		{"the next one is by somebody else", func() { push("two"); sign(ours, eve) }, outcome{refused, "latest@DIGEST is not verified: it is signed by https://git.test/eve/.ci@main, as https://id.test says, which spec.verify.matchOIDCIdentity does not name", "one", true}},
		{"and by an identity of another root", func() { sign(theirs, ci) }, outcome{refused, "latest@DIGEST is not verified: it has a signature that no log of the trusted root vouches for", "one", true}},
		{"and by two, of which one counts", func() {
			b.bundles(digest, must[[]byte](t)(ours.Bundle(eve, digest, cosigner.Sign)), must[[]byte](t)(ours.Bundle(ci, digest, cosigner.Sign)))
		}, outcome{verified, by, "two", true}},
		{"the identity counts no more", func() {
			b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byIdentity("^https://git.test/other/") })
		}, outcome{refused, "latest@DIGEST is not verified: it is signed by https://git.test/eve/.ci@main, as https://id.test says, which spec.verify.matchOIDCIdentity does not name", "two", false}},
		{"and counts again", func() {
			b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byIdentity("^https://git.test/app/") })
		}, outcome{verified, by, "two", true}},
		{"the root has another authority", func() { root(theirs, time.Hour) }, outcome{refused, "latest@DIGEST is not verified: it has a signature that no log of the trusted root vouches for", "two", false}},
		{"the root is back, written anew", func() { root(ours, 2*time.Hour) }, outcome{verified, by, "two", true}},
		{"its authority had expired", func() { root(ours, -time.Hour) }, outcome{refused, expired, "two", false}},
		{"and is good again; the next one has a text", func() {
			root(ours, time.Hour)
			push("three")
			s := must[cosigner.Simple](t)(ours.Simple(ci, digest))
			b.texts(digest, s)
		}, outcome{verified, by, "three", true}},
		{"an expression is none", func() {
			b.edit(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byIdentity("(") })
		}, outcome{[]string{"ArtifactInStorage=True Succeeded", "Ready=False VerificationError", "SourceVerified=False VerificationError", "Stalled=True VerificationError"},
			"spec.verify.matchOIDCIdentity[1].subject is no regular expression: missing closing )", "three", false}},
	})
	want := map[string]string{"gitops.flotilla.io/artifact-signer": "", "gitops.flotilla.io/artifact-signing-key": ""}
	for key := range want {
		want[key] = b.object().Status.Artifact.Metadata[key]
	}
	if want["gitops.flotilla.io/artifact-signer"] != "" {
		t.Errorf("the artifact still names who signed: %v", want)
	}
}

// TestASignedTagThatMoves checks that what is fetched is what was verified, whatever becomes of the tag meanwhile.
func TestASignedTagThatMoves(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	ann := must[cosigner.Key](t)(cosigner.NewKey())
	b.keys(map[string]cosigner.Key{"ann.pub": ann})
	signed := b.push("latest", map[string]string{"app.yaml": "signed"})
	b.texts(signed, must[cosigner.Simple](t)(ann.Simple(signed)))
	moved := false
	b.registry.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".sig") && !moved {
			moved = true
			b.push("latest", map[string]string{"app.yaml": "evil"})
		}
		return false
	})
	b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byKeys() })
	b.reconcile()
	if diff := cmp.Diff(outcome{verified, "verified: artifact signed by the key ann.pub (KEY)", "signed", true}, b.outcome()); diff != "" || !moved {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.reconcile()
	if diff := cmp.Diff(outcome{refused, "latest@DIGEST is not verified: it has no signature of cosign", "signed", true}, b.outcome()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// TestAKeyThatIsTakenAwayMeanwhile: what was verified by a key that is revoked while it is fetched counts until the next look.
func TestAKeyThatIsTakenAwayMeanwhile(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	ann, eve := must[cosigner.Key](t)(cosigner.NewKey()), must[cosigner.Key](t)(cosigner.NewKey())
	b.keys(map[string]cosigner.Key{"ann.pub": ann})
	digest := b.push("latest", map[string]string{"app.yaml": "signed"})
	b.texts(digest, must[cosigner.Simple](t)(ann.Simple(digest)))
	b.registry.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			b.keys(map[string]cosigner.Key{"ann.pub": eve})
		}
		return false
	})
	b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byKeys() })
	b.reconcile()
	b.registry.Answer(nil)
	b.reconcile()
	want := outcome{refused, "latest@DIGEST is not verified: its signature is by no key of the Secret, or of another digest", "signed", false}
	if diff := cmp.Diff(want, b.outcome()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestADoubtWithoutTheRegistry: a key that is taken out of the Secret counts no more, also where the registry is gone.
func TestADoubtWithoutTheRegistry(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	ann, eve := must[cosigner.Key](t)(cosigner.NewKey()), must[cosigner.Key](t)(cosigner.NewKey())
	b.keys(map[string]cosigner.Key{"ann.pub": ann})
	digest := b.push("latest", map[string]string{"app.yaml": "signed"})
	b.texts(digest, must[cosigner.Simple](t)(ann.Simple(digest)))
	b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byKeys() })
	b.reconcile()
	if b.registry.Requests(); len(b.object().Status.Artifact.Metadata) == 0 {
		t.Fatal("nothing is recorded")
	}
	b.reconcile()
	if diff := cmp.Diff([]string{"HEAD /v2/app/manifests/latest"}, b.registry.Requests()); diff != "" {
		t.Errorf("what is verified is asked for again (-want +got):\n%s", diff)
	}
	b.keys(map[string]cosigner.Key{"ann.pub": eve})
	b.registry.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	b.reconcile()
	want := outcome{
		Conditions: []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True AuthenticationFailed", "Ready=False AuthenticationFailed", "Reconciling=True ProgressingWithRetry", "SourceVerified=False VerificationError"},
		Says:       "nobody who counts vouches for the artifact, and a newer one was not fetched", Artifact: "signed",
	}
	if diff := cmp.Diff(want, b.outcome()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUnsignedFromTheFirst: what nobody signed is not even transferred.
func TestUnsignedFromTheFirst(t *testing.T) {
	b := newBench(t, ocirepository.Options{})
	b.keys(map[string]cosigner.Key{"ann.pub": must[cosigner.Key](t)(cosigner.NewKey())})
	b.push("latest", map[string]string{"app.yaml": "one"})
	b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = byKeys() })
	b.reconcile()
	for _, r := range b.registry.Requests() {
		if strings.Contains(r, "/blobs/") {
			t.Errorf("it asked for %s", r)
		}
	}
	if b.object().Status.Artifact != nil {
		t.Errorf("it is stored: %+v", b.object().Status.Artifact)
	}
}

// TestVerifyIsRefused is about what spec.verify may not ask for.
func TestVerifyIsRefused(t *testing.T) {
	root := &meta.LocalObjectReference{Name: "signers"}
	for name, tc := range map[string]struct {
		verify sourcev1.OCIRepositoryVerification
		want   string
	}{
		"another provider":          {sourcev1.OCIRepositoryVerification{Provider: "gpg", SecretRef: root}, "UnsupportedField: spec.verify.provider gpg is not supported: sign with cosign or notation, and name that"},
		"notation without a Secret": {sourcev1.OCIRepositoryVerification{Provider: "notation"}, "VerificationError: spec.verify.provider notation needs a Secret in spec.verify.secretRef, with trustpolicy.json and the certificates of who may sign"},
		"notation and identities":   {sourcev1.OCIRepositoryVerification{Provider: "notation", SecretRef: root, MatchOIDCIdentity: byIdentity(".").MatchOIDCIdentity}, "VerificationError: spec.verify has identities or a trusted root, which are for cosign: name who may sign in the trustedIdentities of the trust policy"},
		"keys and identities":       {sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: root, MatchOIDCIdentity: byIdentity(".").MatchOIDCIdentity}, "VerificationError: spec.verify has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only"},
		"keys and a root":           {sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: root, TrustedRootSecretRef: root}, "VerificationError: spec.verify has keys in secretRef, and identities or a trusted root: leave out the keys, or the others, which count without keys only"},
		"the public root":           {sourcev1.OCIRepositoryVerification{Provider: "cosign", MatchOIDCIdentity: byIdentity(".").MatchOIDCIdentity}, "VerificationError: spec.verify without keys in secretRef needs a trusted root, and the one of the public Sigstore is not fetched: put its trusted_root.json, as cosign trusted-root create writes it, into a Secret, and name that in spec.verify.trustedRootSecretRef"},
		"anybody whom a root knows": {sourcev1.OCIRepositoryVerification{Provider: "cosign", TrustedRootSecretRef: root}, "VerificationError: spec.verify without keys in secretRef, and without matchOIDCIdentity, would take what anybody signs: name the issuer and the subject of who may"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, ocirepository.Options{})
			b.push("latest", map[string]string{"app.yaml": "one"})
			b.create(func(s *sourcev1.OCIRepositorySpec) { s.Verify = &tc.verify })
			b.reconcile()
			if want := "False " + tc.want; b.ready() != want {
				t.Errorf("%s\nwant %s", b.ready(), want)
			}
			if c := apimeta.FindStatusCondition(b.object().Status.Conditions, meta.StalledCondition); c == nil || c.Status != metav1.ConditionTrue {
				t.Errorf("it is tried again: %q", conditions(b.object()))
			}
			if provenance.UnverifiedArtifact(b.object()) == "" {
				t.Error("it may be built")
			}
		})
	}
}
