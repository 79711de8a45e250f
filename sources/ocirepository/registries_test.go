package ocirepository_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/internal/cosigner"
	"github.com/flotilla-io/flotilla/internal/notary"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
)

// TestRegistries fetches from registries as others run them: over TLS with an authority of one's own, with a password, by a range of
// versions, signed with cosign and with Notation.
func TestRegistries(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a registry, which takes a while")
	}
	for name, program := range map[string]func(*testing.T) string{
		"that of the CNCF": func(t *testing.T) string {
			binary := filepath.Join(t.TempDir(), "registry")
			build := exec.CommandContext(t.Context(), "nice", "-n", "10", "go", "build", "-ldflags=-w -s", "-o", binary, ".")
			build.Dir = filepath.Join("..", "..", "e2e", "registry")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("build the registry: %v\n%s", err, out)
			}
			return binary
		},
		"Debian's": func(t *testing.T) string {
			binary, err := exec.LookPath("docker-registry")
			if err != nil {
				t.Skip("there is no docker-registry: install the package of that name (make test does)")
			}
			return binary
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follow(t, serveRegistry(t, program(t)))
		})
	}
}

// follow follows a registry by a source, which is to take what is signed and nothing else.
func follow(t *testing.T, r *registry) {
	t.Helper()
	b := newBench(t, ocirepository.Options{})
	ann := must[cosigner.Key](t)(cosigner.NewKey())
	acme := must[*notary.Authority](t)(notary.NewAuthority("acme"))
	ben := must[*notary.Signer](t)(acme.Signer("ben", notary.Issue{}))
	login := base64.StdEncoding.EncodeToString([]byte("fleet:" + canary))
	b.add(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "login"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, r.host, login),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "authority"}, Data: map[string][]byte{"ca.crt": r.authority}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "notary"}, Data: map[string][]byte{
			"trustpolicy.json": notary.Policy("strict", r.host+"/team/app", notary.Named("ben", "acme")), "acme.pem": acme.Root(),
		}},
	)
	b.keys(map[string]cosigner.Key{"ann.pub": ann})
	b.create(func(s *sourcev1.OCIRepositorySpec) {
		s.URL, s.Insecure, s.Reference = "oci://"+r.host+"/team/app", false, &sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"}
		s.SecretRef, s.CertSecretRef, s.Verify = &meta.LocalObjectReference{Name: "login"}, &meta.LocalObjectReference{Name: "authority"}, byKeys()
	})
	push := func(tag string) (string, int) {
		t.Helper()
		return r.artifact(tag, must[[]byte](t)(ociserver.Pack(map[string]string{"app.yaml": tag})))
	}
	refusal := func(of, why string) outcome {
		return outcome{refused, of + "@DIGEST is not verified: " + why, "1.0.0", true}
	}
	byAnn := func(of string) outcome {
		return outcome{verified, "verified: artifact signed by the key ann.pub (KEY)", of, true}
	}
	_, _ = push("0.9.0")
	first, _ := push("1.0.0")
	r.text(first, must[cosigner.Simple](t)(ann.Simple(first)))
	var last string
	var size int
	b.walk([]step{
		{"a text of cosign", func() {}, byAnn("1.0.0")},
		{"a later version, which nobody signed", func() { last, size = push("1.10.0") }, refusal("1.10.0", "it has no signature of cosign")},
		{"a bundle of cosign", func() { r.refers(last, size, ociserver.Bundle, must[[]byte](t)(ann.Bundle(last, cosigner.Sign))) }, byAnn("1.10.0")},
		{"Notation is asked for, and nobody signed with it", func() {
			b.edit(func(s *sourcev1.OCIRepositorySpec) {
				s.Verify = &sourcev1.OCIRepositoryVerification{Provider: "notation", SecretRef: &meta.LocalObjectReference{Name: "notary"}}
			})
		}, outcome{refused, "1.10.0@DIGEST is not verified: it has no signature of Notation", "1.10.0", false}},
		{"a signature of Notation", func() {
			of := notary.Artifact{MediaType: ociserver.Manifest, Digest: last, Size: int64(size)}
			r.refers(last, size, notary.COSE, must[[]byte](t)(ben.Sign(t.Context(), of, notary.COSE, time.Hour)))
		}, outcome{verified, "verified: artifact signed by CN=ben,O=acme,ST=BE,C=DE, as CN=Root,O=acme,ST=BE,C=DE says", "1.10.0", true}},
	})
	b.edit(func(s *sourcev1.OCIRepositorySpec) { s.SecretRef = nil })
	b.reconcile()
	if want := "False AuthenticationFailed: "; !strings.HasPrefix(b.ready(), want) {
		t.Errorf("without the password: %s, want %s", b.ready(), want)
	}
	b.edit(func(s *sourcev1.OCIRepositorySpec) { s.CertSecretRef = nil })
	b.reconcile()
	if want := "TLS failed: x509: certificate signed by unknown authority"; !strings.Contains(b.ready(), want) {
		t.Errorf("without the authority: %s, want %s", b.ready(), want)
	}
}

// registry is a registry in a process of its own, and who pushes to it.
type registry struct {
	t         *testing.T
	host      string
	authority []byte
	client    *http.Client
	lists     map[string][]any // what refers to a digest
}

// serveRegistry runs a program that serves a registry by a file, as that of the CNCF does, for the time of the test.
func serveRegistry(t *testing.T, program string) *registry {
	t.Helper()
	dir := t.TempDir()
	r := &registry{t: t, host: freeAddress(t), lists: map[string][]any{}}
	password := must[[]byte](t)(bcrypt.GenerateFromPassword([]byte(canary), bcrypt.MinCost))
	certificate, key := selfSigned(t)
	r.authority = certificate
	for name, content := range map[string][]byte{
		"tls.crt": certificate, "tls.key": key, "users": append([]byte("fleet:"), password...),
		"registry.yml": fmt.Appendf(nil, "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {inmemory: {}}\nhttp: {addr: %q, secret: test, tls: {certificate: %q, key: %q}}\nauth: {htpasswd: {realm: fleet, path: %q}}\n",
			r.host, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "users")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var says bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", filepath.Join(dir, "registry.yml"))
	cmd.Stdout, cmd.Stderr, cmd.Env = &says, &says, append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the registry says:\n%s", says.String())
		}
	})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(r.client.CloseIdleConnections)
	deadline, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if conn, err := (&net.Dialer{}).DialContext(deadline, "tcp", r.host); err == nil {
			_ = conn.Close()
			return r
		}
		select {
		case <-deadline.Done():
			t.Fatal("the registry does not listen")
		case <-tick.C:
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l := must[net.Listener](t)((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

// selfSigned returns a certificate for loopback, and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	text := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// send sends a request, and returns where it leads.
func (r *registry) send(method, to, mediaType string, content []byte) string {
	r.t.Helper()
	req := must[*http.Request](r.t)(http.NewRequestWithContext(r.t.Context(), method, to, bytes.NewReader(content)))
	req.SetBasicAuth("fleet", canary)
	req.Header.Set("Content-Type", mediaType)
	resp := must[*http.Response](r.t)(r.client.Do(req))
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if resp.StatusCode >= 300 || err != nil {
		r.t.Fatal(errors.Join(fmt.Errorf("%s %s: HTTP %d: %s", method, to, resp.StatusCode, answer), err))
	}
	return resp.Header.Get("Location")
}

func sha(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }

// blob uploads something, and returns what points at it.
func (r *registry) blob(mediaType string, content []byte, annotations map[string]string) map[string]any {
	r.t.Helper()
	begun := must[*url.URL](r.t)(url.Parse(r.send(http.MethodPost, "https://"+r.host+"/v2/team/app/blobs/uploads/", "", nil)))
	query := begun.Query()
	query.Set("digest", sha(content))
	begun.RawQuery = query.Encode()
	base := &url.URL{Scheme: "https", Host: r.host}
	r.send(http.MethodPut, base.ResolveReference(begun).String(), "application/octet-stream", content)
	out := map[string]any{"mediaType": mediaType, "digest": sha(content), "size": len(content)}
	if annotations != nil {
		out["annotations"] = annotations
	}
	return out
}

// manifest pushes a manifest or an index under a tag, or without one by its digest.
func (r *registry) manifest(tag, mediaType string, content map[string]any) (digest string, size int) {
	r.t.Helper()
	content["schemaVersion"], content["mediaType"] = 2, mediaType
	text := must[[]byte](r.t)(json.Marshal(content))
	if tag == "" {
		tag = sha(text)
	}
	r.send(http.MethodPut, "https://"+r.host+"/v2/team/app/manifests/"+tag, mediaType, text)
	return sha(text), len(text)
}

func (r *registry) artifact(tag string, layer []byte) (digest string, size int) {
	r.t.Helper()
	return r.manifest(tag, ociserver.Manifest, map[string]any{
		"config": r.blob(ociserver.Config, []byte("{}"), nil), "layers": []any{r.blob(ociserver.Layer, layer, nil)},
	})
}

// text pushes a simple signature of cosign.
func (r *registry) text(digest string, of cosigner.Simple) {
	r.t.Helper()
	r.manifest(strings.Replace(digest, ":", "-", 1)+".sig", ociserver.Manifest, map[string]any{
		"config": r.blob("application/vnd.oci.image.config.v1+json", []byte("{}"), nil), "layers": []any{r.blob(ociserver.Simple, of.Text, of.Annotations)},
	})
}

// refers pushes a signature that refers to a digest, as its makers do: with the tag for lists where the registry keeps none.
func (r *registry) refers(digest string, size int, mediaType string, content []byte) {
	r.t.Helper()
	manifest := map[string]any{
		"layers": []any{r.blob(mediaType, content, nil)}, "subject": map[string]any{"mediaType": ociserver.Manifest, "digest": digest, "size": size},
	}
	artifactType := mediaType
	if mediaType == ociserver.Bundle {
		manifest["artifactType"], manifest["config"] = mediaType, r.blob("application/vnd.oci.empty.v1+json", []byte("{}"), nil)
	} else {
		artifactType = ociserver.Notary
		manifest["config"] = r.blob(ociserver.Notary, []byte("{}"), nil)
	}
	of, length := r.manifest("", ociserver.Manifest, manifest)
	r.lists[digest] = append(r.lists[digest], map[string]any{"mediaType": ociserver.Manifest, "artifactType": artifactType, "digest": of, "size": length})
	r.manifest(strings.Replace(digest, ":", "-", 1), "application/vnd.oci.image.index.v1+json", map[string]any{"manifests": r.lists[digest]})
}
