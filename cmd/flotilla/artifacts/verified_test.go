package artifacts_test

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/flotilla-io/flotilla/internal/ociserver"
)

// publicOf writes the public half of a private key of cosign's beside it, and returns its file.
func publicOf(t *testing.T, file, password string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	plain, err := encrypted.Decrypt(block.Bytes, []byte(password))
	if err != nil {
		t.Fatal(err)
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain}), cryptoutils.SkipPassword)
	if err != nil {
		t.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(private.(crypto.Signer).Public())
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(file), "cosign.pub")
	if err := os.WriteFile(out, public, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// others verify what was signed without any code of ours: they find it as the specification of registries says, and judge it by the
// libraries of Sigstore.
type others struct {
	t          *testing.T
	host, repo string
	digest     string
	verifier   signature.Verifier
}

// get reads from the registry; nil for what is not there.
func (o others) get(kind, what string) []byte {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, "http://"+o.host+"/v2/"+o.repo+"/"+kind+"/"+what, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound {
		o.t.Fatalf("HTTP %d, error %v", resp.StatusCode, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil
	}
	return content
}

// entry is a descriptor of the specification.
type entry struct {
	Digest      string
	Annotations map[string]string
}

// layer returns the only layer of a manifest, which is of a type.
func (o others) layer(of, kind string) (content []byte, annotations map[string]string) {
	o.t.Helper()
	var manifest struct {
		ArtifactType string
		Layers       []entry
	}
	if err := json.Unmarshal(o.get("manifests", of), &manifest); err != nil || len(manifest.Layers) != 1 {
		o.t.Fatalf("%s has %+v, error %v", of, manifest, err)
	}
	if manifest.ArtifactType != kind {
		o.t.Errorf("%s is of the type %q, want %q", of, manifest.ArtifactType, kind)
	}
	return o.get("blobs", manifest.Layers[0].Digest), manifest.Layers[0].Annotations
}

// bundle verifies the one bundle that refers to the artifact.
func (o others) bundle() {
	o.t.Helper()
	const kind, says = "application/vnd.dev.sigstore.bundle.v0.3+json", "https://sigstore.dev/cosign/sign/v1"
	list := o.get("referrers", o.digest)
	if list == nil {
		list = o.get("manifests", strings.Replace(o.digest, ":", "-", 1))
	}
	var index struct{ Manifests []entry }
	if err := json.Unmarshal(list, &index); err != nil || len(index.Manifests) != 1 {
		o.t.Fatalf("%s refers to the artifact, error %v", list, err)
	}
	if of := index.Manifests[0]; of.Annotations["dev.sigstore.bundle.predicateType"] != says || of.Annotations["dev.sigstore.bundle.content"] != "dsse-envelope" {
		o.t.Errorf("the bundle is listed as %+v", of)
	}
	content, _ := o.layer(index.Manifests[0].Digest, kind)
	var b bundle.Bundle
	if err := b.UnmarshalJSON(content); err != nil {
		o.t.Fatal(err)
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(o.verifier, time.Time{}, time.Time{}), nil
	})
	judge, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	if err != nil {
		o.t.Fatal(err)
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(o.digest, "sha256:"))
	if err != nil {
		o.t.Fatal(err)
	}
	result, err := judge.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), verify.WithKey()))
	if err != nil {
		o.t.Fatalf("sigstore-go does not verify the bundle: %v", err)
	}
	if got := result.Statement.GetPredicateType(); got != says {
		o.t.Errorf("it is a statement of %s", got)
	}
}

// simple verifies the one text under the tag of signatures.
func (o others) simple() {
	o.t.Helper()
	content, annotations := o.layer(strings.Replace(o.digest, ":", "-", 1)+".sig", "")
	raw, err := base64.StdEncoding.DecodeString(annotations["dev.cosignproject.cosign/signature"])
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.verifier.VerifySignature(bytes.NewReader(raw), bytes.NewReader(content)); err != nil {
		o.t.Errorf("sigstore does not verify the text: %v", err)
	}
	var report struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			}
			Identity struct {
				Name string `json:"docker-reference"`
			}
			Type string
		}
	}
	if err := json.Unmarshal(content, &report); err != nil || report.Critical.Image.Digest != o.digest || report.Critical.Type != "cosign container image signature" || report.Critical.Identity.Name != o.host+"/"+o.repo {
		o.t.Errorf("the text says %s, error %v", content, err)
	}
}

// TestOthersVerify: what was signed is found and verified by others, in a registry with lists of what refers to an artifact, and in
// one where a tag stands for the list. Where cosign is installed, it is asked, too.
func TestOthersVerify(t *testing.T) {
	for name, server := range map[string]*ociserver.Server{"a registry with lists": ociserver.NewWithReferrers(), "one without": ociserver.New()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, server)
			file, _ := keys(t, canary)
			public := publicOf(t, file, canary)
			t.Setenv("COSIGN_PASSWORD", canary)
			text, err := os.ReadFile(public)
			if err != nil {
				t.Fatal(err)
			}
			key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
			if err != nil {
				t.Fatal(err)
			}
			verifier, err := signature.LoadVerifier(key, crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []string{"bundle", "simple"} {
				repo := "of-" + form
				got := w.call("", "push artifact oci://REGISTRY/"+repo+":v1"+pushing+" --sign --key "+file+" --signature-format "+form)
				if got.Code != 0 {
					t.Fatalf("%+v", got)
				}
				by := others{t, w.host, repo, "", verifier}
				by.digest = fmt.Sprintf("sha256:%x", sha256.Sum256(by.get("manifests", "v1")))
				if form == "bundle" {
					by.bundle()
				} else {
					by.simple()
				}
				w.askCosign(w.host+"/"+repo+"@"+by.digest, public)
			}
		})
	}
}

// askCosign verifies an artifact with cosign itself, where that is installed.
func (w *world) askCosign(artifact, public string) {
	w.t.Helper()
	cosign, err := exec.LookPath("cosign")
	if err != nil {
		w.t.Log("cosign is not installed, and not asked")
		return
	}
	run := func(key string) ([]byte, error) {
		return exec.CommandContext(w.t.Context(), cosign, "verify", "--key", key, "--insecure-ignore-tlog", "--allow-http-registry", artifact).CombinedOutput()
	}
	if out, err := run(public); err != nil {
		w.t.Errorf("cosign verify: %v\n%s", err, out)
	}
	other, _ := keys(w.t, canary)
	if out, err := run(publicOf(w.t, other, canary)); err == nil {
		w.t.Errorf("cosign verifies it with another key:\n%s", out)
	}
}
