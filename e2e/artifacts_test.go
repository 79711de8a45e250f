package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/ociserver"
)

// signedSource follows a registry, and takes only what is signed.
const signedSource = `
apiVersion: v1
kind: Secret
metadata: {name: signers, namespace: %[1]s}
data: {ci.pub: %[3]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: src, namespace: %[1]s}
spec:
  url: oci://%[2]s/fleet
  insecure: true
  interval: 1h
  ref: {tag: production}
  verify: {provider: cosign, secretRef: {name: signers}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: %[1]s}
spec: {sourceRef: {kind: OCIRepository, name: src}, path: ./app, interval: 1h, prune: true}
`

// signingKey writes a private key, and returns its file and the public one as a Secret has it.
func signingKey(t *testing.T) (file, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: other}))
}

// TestArtifactsOfEither: Flux's command line and ours read what the other pushes, equal files have equal digests, and what ours signs is
// followed by an OCIRepository that wants signatures.
func TestArtifactsOfEither(t *testing.T) {
	f := flux{t: t, binary: built(t, fluxProgram), namespace: fleet.NameOf(t), cache: t.TempDir()}
	file, public := signingKey(t)
	for name, server := range map[string]*ociserver.Server{"lists": ociserver.NewWithReferrers(), "tags": ociserver.New()} {
		listening := httptest.NewServer(server)
		t.Cleanup(listening.Close)
		host := listening.Listener.Addr().String()
		dir := filepath.Join(t.TempDir(), "files")
		for path, content := range map[string]string{"app/web.yaml": fmt.Sprintf(byHandApp, f.namespace, "nginx:1.29"), "app/picture.png": "left out", "run.sh": "#!/bin/sh"} {
			if err := write(filepath.Join(dir, path), []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		pushing := []string{"push", "artifact", "oci://" + host + "/fleet:ours", "--path=" + dir, "--source=https://git.test/fleet", "--revision=main@sha1:1", "--annotations=org.test/of=it", "--reproducible"}
		ours := digestIn(t, the.Flotilla(t, append(pushing, "--sign", "--key="+file)...))
		pushing[2] = "oci://" + host + "/fleet:theirs"
		out, err := f.run(pushing...)
		if err != nil {
			t.Fatalf("flux push artifact: %v\n%s", err, out)
		}
		if theirs := digestIn(t, out); theirs != ours {
			t.Errorf("%s: equal files have the digests %s of ours and %s of Flux's", name, ours, theirs)
		}
		f.check([]fluxStep{
			{args: "diff artifact oci://" + host + "/fleet:ours --path=" + dir, want: []string{`no changes detected`}},
			{args: "list artifacts oci://" + host + "/fleet --filter-regex=ours", want: []string{`main@sha1:1`}},
			{args: "tag artifact oci://" + host + "/fleet:ours --tag=more", want: []string{`tagged as`}},
			{args: "pull artifact oci://" + host + "/fleet:ours --output " + t.TempDir(), want: []string{`main@sha1:1`, `content extracted`}},
		})
		for args, want := range map[string]string{
			"diff artifact oci://" + host + "/fleet:theirs -f " + dir:                                  "no difference",
			"list artifacts oci://" + host + "/fleet --filter-regex more":                              ours,
			"pull artifact oci://" + host + "/fleet:theirs -o " + filepath.Join(t.TempDir(), "pulled"): "pulled 2 files",
			"tag artifact oci://" + host + "/fleet:theirs --tag production":                            "tagged",
		} {
			if out := the.Flotilla(t, strings.Fields(args)...); !strings.Contains(out, want) {
				t.Errorf("%s: flotilla %s does not print %q; it prints:\n%s", name, args, want, out)
			}
		}
		if name == "tags" {
			the.Apply(t, fmt.Sprintf(inRegistry, f.namespace))
			t.Cleanup(func() { the.unfollow(t, f.namespace) })
			the.Apply(t, fmt.Sprintf(signedSource, f.namespace, host, public))
			the.applied(t, f.namespace, "production@"+ours, time.Minute)
			eventually(t, time.Minute, "it says who signed", func(ctx context.Context) error {
				var source sourcev1.OCIRepository
				if err := the.hub.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: "src"}, &source); err != nil {
					return err
				}
				if source.Status.Artifact == nil || source.Status.Artifact.Metadata["gitops.flotilla.io/artifact-signer"] != "ci.pub" {
					return errors.New("it does not")
				}
				return nil
			})
		}
	}
}

// digestIn returns the digest that a command prints.
func digestIn(t *testing.T, out string) string {
	t.Helper()
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(out)
	if digest == "" {
		t.Fatalf("there is no digest:\n%s", out)
	}
	return digest
}
