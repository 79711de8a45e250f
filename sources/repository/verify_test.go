package repository_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/provenance"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// signs makes an SSH key, lets the clone sign with it, and returns the public half.
func (b *bench) signs(who string) string {
	b.t.Helper()
	path := filepath.Join(b.t.TempDir(), "key")
	if out, err := exec.CommandContext(b.t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", path).CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %s", err, out)
	}
	b.run("config", "gpg.format", "ssh")
	b.run("config", "user.signingkey", path)
	public, err := os.ReadFile(path + ".pub")
	if err != nil {
		b.t.Fatal(err)
	}
	return string(public)
}

// trusts writes the Secret of spec.verify; without keys it removes it.
func (b *bench) trusts(keys ...string) {
	b.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "signers"}}
	if err := b.hub.Delete(b.t.Context(), secret); err != nil && len(keys) == 0 {
		b.t.Fatal(err)
	}
	if len(keys) == 0 {
		return
	}
	secret.ResourceVersion = ""
	secret.Data = map[string][]byte{"team.sshpub": []byte(strings.Join(keys, ""))}
	if err := b.hub.Create(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
}

func verifying(mode sourcev1.GitVerificationMode) *sourcev1.GitRepositoryVerification {
	return &sourcev1.GitRepositoryVerification{Mode: mode, SecretRef: meta.LocalObjectReference{Name: "signers"}}
}

// fingerprint matches the name of an SSH key.
var fingerprint = regexp.MustCompile(`SHA256:[A-Za-z0-9+/]+`)

// outcome is what one run of the loop left behind.
type outcome struct {
	Conditions []string
	// Says is the message of SourceVerified, with HEAD and KEY for what differs from run to run.
	Says string
	// Artifact is the subject of its commit, and MayBuild whether a Kustomization may build it.
	Artifact string
	MayBuild bool
}

// TestVerify walks through the life of a source that asks for signatures.
func TestVerify(t *testing.T) {
	b := newBench(t, repository.Options{})
	ann := b.signs("ann")
	b.commit("unsigned", map[string]string{"a.yaml": "a: 1"})
	b.create(nil)
	verified := []string{"ArtifactInStorage=True Succeeded", "Ready=True Succeeded", "SourceVerified=True Succeeded"}
	refused := []string{"ArtifactInStorage=True Succeeded", "Ready=False VerificationError", "Reconciling=True ProgressingWithRetry", "SourceVerified=False VerificationError"}
	spec := func(v *sourcev1.GitRepositoryVerification) func() {
		return func() { b.update(func(o *sourcev1.GitRepository) { o.Spec.Verification = v }) }
	}
	named := func(secret string, generation int64) {
		b.update(func(o *sourcev1.GitRepository) {
			o.Spec.Verification, o.Generation = verifying(""), generation
			o.Spec.Verification.SecretRef.Name = secret
		})
	}
	refer := func(ref sourcev1.GitRepositoryRef) {
		b.update(func(o *sourcev1.GitRepository) { o.Spec.Reference = &ref })
	}
	for _, step := range []struct {
		what   string
		change func()
		want   outcome
	}{
		{"nothing is asked for", func() {}, outcome{stored, "", "unsigned", true}},
		{"signatures are, and there is no Secret", spec(verifying("")), outcome{refused, "the Secret shop/signers of spec.verify.secretRef is not there: create it with the public keys whose signatures count", "unsigned", false}},
		{"the commit is not signed", func() { b.trusts(ann) }, outcome{refused, "main@sha1:HEAD is not verified: the commit is not signed", "unsigned", false}},
		{"the next one is", func() { b.run("config", "commit.gpgsign", "true"); b.commit("signed", nil) }, outcome{verified, "verified: commit signed by ann (KEY)", "signed", true}},
		{"the one after it is not", func() { b.run("config", "commit.gpgsign", "false"); b.commit("again unsigned", nil) }, outcome{refused, "main@sha1:HEAD is not verified: the commit is not signed", "signed", true}},
		{"somebody else signed", func() { b.signs("eve"); b.run("config", "commit.gpgsign", "true"); b.commit("by eve", nil) }, outcome{refused, "main@sha1:HEAD is not verified: the commit is signed by the SSH key KEY, which is not among those of the Secret", "signed", true}},
		{"whose key is taken in", func() { b.trusts(ann, b.public()) }, outcome{verified, "verified: commit signed by eve (KEY)", "by eve", true}},
		{"and taken away again", func() { b.trusts(ann) }, outcome{refused, "main@sha1:HEAD is not verified: the commit is signed by the SSH key KEY, which is not among those of the Secret", "by eve", false}},
		{"and taken in once more", func() { b.trusts(ann, b.public()) }, outcome{verified, "verified: commit signed by eve (KEY)", "by eve", true}},
		{"the Secret is gone for a while", func() { b.trusts() }, outcome{refused, "the Secret shop/signers of spec.verify.secretRef is not there: create it with the public keys whose signatures count", "by eve", true}},
		{"another one is named, which is not there", func() { b.trusts(b.public()); named("others", 2) }, outcome{refused, "the Secret shop/others of spec.verify.secretRef is not there: create it with the public keys whose signatures count", "by eve", false}},
		{"the first is named again", func() { named("signers", 3) }, outcome{verified, "verified: commit signed by eve (KEY)", "by eve", true}},
		{"a tag is asked for, and none named", func() { spec(verifying(sourcev1.ModeGitTag))() }, outcome{refused, "main@sha1:HEAD is not verified, without a tag: spec.verify.mode Tag needs a signed tag, and spec.ref leads to none: name one in spec.ref.tag or spec.ref.semver, or use the mode HEAD", "by eve", false}},
		{"a lightweight tag", func() {
			b.run("tag", "v0")
			b.run("push", "--quiet", "origin", "v0")
			refer(sourcev1.GitRepositoryRef{Tag: "v0"})
		}, outcome{refused, "v0@sha1:HEAD is not verified by its tag: v0 is a lightweight tag, which nobody can sign: git tag -s -f v0, and push it", "by eve", false}},
		{"a tag that is not signed", func() { b.tag("-a", "v1"); refer(sourcev1.GitRepositoryRef{SemVer: "1.x"}) }, outcome{refused, "v1@sha1:HEAD is not verified by its tag: the tag is not signed", "by eve", false}},
		{"a tag that is", func() { b.tag("-s", "v1.1") }, outcome{verified, "verified: tag signed by eve (KEY)", "by eve", true}},
		{"a signed tag under another name", func() { b.run("push", "--quiet", "origin", "refs/tags/v1.1:refs/tags/v1.2") }, outcome{refused, `v1.2@sha1:HEAD is not verified by its tag: the tag v1.2 was signed as "v1.1": somebody has given it another name`, "by eve", true}},
		{"that name is gone", func() { b.run("push", "--quiet", "origin", ":refs/tags/v1.2") }, outcome{verified, "verified: tag signed by eve (KEY)", "by eve", true}},
		{"the Secret has a mistake beside the key", func() { b.spoil() }, outcome{refused, "Secret shop/signers: invalid public keys: key README: it is no armored OpenPGP key, as gpg --armor --export prints it", "by eve", true}},
		{"and the key is gone from it", func() { b.trusts(ann); b.spoil() }, outcome{refused, "Secret shop/signers: invalid public keys: key README: it is no armored OpenPGP key, as gpg --armor --export prints it", "by eve", false}},
		{"the key is back", func() { b.trusts(b.public()) }, outcome{verified, "verified: tag signed by eve (KEY)", "by eve", true}},
		{"the commit, too", spec(verifying(sourcev1.ModeGitTagAndHEAD)), outcome{verified, "verified: tag signed by eve (KEY), commit signed by eve (KEY)", "by eve", true}},
		{"nothing is asked for any more", spec(nil), outcome{stored, "", "by eve", true}},
	} {
		t.Run(step.what, func(t *testing.T) {
			step.change()
			_, err, _, events := b.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			told := len(events) == 1 && strings.HasPrefix(events[0], "Warning VerificationError")
			if strings.Contains(step.want.Says, " is not verified") && !told {
				t.Errorf("of a revision that is refused the Events say %q", events)
			}
			if diff := cmp.Diff(step.want, b.outcome()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if _, _, writes, events := b.reconcile(); writes != 0 || len(events) != 0 {
				t.Errorf("the next run wrote %d times, with the Events %v", writes, events)
			}
		})
	}
}

// spoil adds to the Secret what is no key.
func (b *bench) spoil() {
	b.t.Helper()
	var secret corev1.Secret
	if err := b.hub.Get(b.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: "signers"}, &secret); err != nil {
		b.t.Fatal(err)
	}
	secret.Data["README"] = []byte("whose keys these are")
	if err := b.hub.Update(b.t.Context(), &secret); err != nil {
		b.t.Fatal(err)
	}
}

// TestADoubtWithoutTheRemote: a key that is taken out of the Secret counts no more, also where the remote or its credentials are gone.
func TestADoubtWithoutTheRemote(t *testing.T) {
	b := newBench(t, repository.Options{})
	ann := b.signs("ann")
	b.run("config", "commit.gpgsign", "true")
	b.commit("signed", nil)
	b.trusts(ann)
	b.create(func(o *sourcev1.GitRepository) { o.Spec.Verification = verifying("") })
	b.mustReconcile()
	b.signs("eve")
	b.trusts(b.public())
	b.update(func(o *sourcev1.GitRepository) { o.Spec.SecretRef = &meta.LocalObjectReference{Name: "missing"} })
	if _, err, _, _ := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	want := outcome{
		Conditions: []string{"ArtifactInStorage=True Succeeded", "FetchFailed=True AuthenticationFailed", "Ready=False AuthenticationFailed", "Reconciling=True ProgressingWithRetry", "SourceVerified=False VerificationError"},
		Says:       "no key of the Secret vouches for the artifact, and a newer one was not fetched", Artifact: "signed",
	}
	if diff := cmp.Diff(want, b.outcome()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// public is the key that the clone signs with.
func (b *bench) public() string {
	b.t.Helper()
	public, err := os.ReadFile(b.run("config", "user.signingkey") + ".pub")
	if err != nil {
		b.t.Fatal(err)
	}
	return string(public)
}

// tag makes and pushes a tag of the newest commit.
func (b *bench) tag(how, name string) {
	b.t.Helper()
	b.run("tag", how, "-m", name, name)
	b.run("push", "--quiet", "origin", name)
}

func (b *bench) outcome() outcome {
	b.t.Helper()
	object := b.object()
	out := outcome{Conditions: conditions(object), MayBuild: provenance.Unverified(object) == ""}
	if object.Status.Artifact != nil {
		out.Artifact = object.Status.Artifact.Metadata["gitops.flotilla.io/commit-subject"]
	}
	if c := apimeta.FindStatusCondition(object.Status.Conditions, sourcev1.SourceVerifiedCondition); c != nil {
		out.Says = strings.ReplaceAll(fingerprint.ReplaceAllString(c.Message, "KEY"), b.run("rev-parse", "HEAD"), "HEAD")
	}
	return out
}
