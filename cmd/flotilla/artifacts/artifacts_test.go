package artifacts_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/flotilla-io/flotilla/cmd/flotilla/artifacts"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/cosign"
	"github.com/flotilla-io/flotilla/sources/oci"
)

var golden = commandtest.Golden("testdata")

// canary is the secret that must never show.
const canary = "CANARY-d59e"

// world is a registry, and a user with a folder of files.
type world struct {
	t      *testing.T
	server *ociserver.Server
	host   string
	folder string
	out    strings.Builder
}

func newWorld(t *testing.T, server *ociserver.Server) *world {
	t.Helper()
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "COSIGN_PASSWORD", "HTTP_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, "")
	}
	w := &world{t: t, server: server, host: listening.Listener.Addr().String(), folder: filepath.Join(t.TempDir(), "deploy")}
	w.write("app/web.yaml", "kind: Deployment\n")
	w.write("fleet.yaml", "kind: PropagationPolicy\n")
	return w
}

// write writes a file of the folder.
func (w *world) write(name, content string) {
	w.t.Helper()
	at := filepath.Join(w.folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// words are the parts of a call, in which REGISTRY and FOLDER stand for those of the test.
func (w *world) words(line string) []string {
	return strings.Fields(strings.NewReplacer("REGISTRY", w.host, "FOLDER", w.folder).Replace(line))
}

// call runs a command.
func (w *world) call(in, line string) commandtest.Result {
	w.t.Helper()
	return commandtest.Run(w.t.Context(), commandtest.Root(artifacts.Commands), in, w.words(line)...)
}

var (
	digests = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	columns = regexp.MustCompile(`(\S) {2,}`)
	sizes   = regexp.MustCompile(`[0-9.]+ (?:bytes?|KiB|MiB) sent`)
)

// show adds a call to what the golden file has.
func (w *world) show(in, line string) {
	w.t.Helper()
	text := w.call(in, line).To(line)
	text = digests.ReplaceAllString(sizes.ReplaceAllString(text, "SIZE sent"), "DIGEST")
	text = strings.NewReplacer(w.host, "REGISTRY", w.folder, "FOLDER").Replace(text)
	w.out.WriteString(columns.ReplaceAllString(text, "$1  ")) // as wide as ports are
}

const pushing = " -f FOLDER --source https://git.test/fleet --revision main@sha1:1 --reproducible"

// TestLifeOfAnArtifact is what users do with one.
func TestLifeOfAnArtifact(t *testing.T) {
	w := newWorld(t, ociserver.New())
	w.show("", "push artifact oci://REGISTRY/fleet:v1.0.0"+pushing+" -a org.test/of=a=b")
	w.show("", "push artifact oci://REGISTRY/fleet:v1.0.0"+pushing+" -a org.test/of=a=b")
	w.show("", "diff artifact oci://REGISTRY/fleet:v1.0.0 -f FOLDER")
	w.write("app/web.yaml", "kind: StatefulSet\n")
	w.write("app/new.yaml", "kind: Service\n")
	if err := errors.Join(os.Remove(filepath.Join(w.folder, "fleet.yaml")), os.Symlink("app/new.yaml", filepath.Join(w.folder, "link.yaml"))); err != nil {
		t.Fatal(err)
	}
	w.show("", "diff artifact oci://REGISTRY/fleet:v1.0.0 -f FOLDER")
	w.show("", "diff artifact oci://REGISTRY/fleet:v1.0.0 -f FOLDER -o json")
	w.show("", "push artifact oci://REGISTRY/fleet:v1.1.0"+pushing+" -o json")
	w.show("kind: Job\n", "push artifact oci://REGISTRY/fleet -f - --source stdin --revision v2 -o yaml")
	w.show("", "tag artifact oci://REGISTRY/fleet:v1.1.0 --tag production --tag v1.1.0")
	w.show("", "list artifacts oci://REGISTRY/fleet")
	w.show("", "list artifacts oci://REGISTRY/fleet --filter-semver >1.0.0")
	w.show("", "list artifacts oci://REGISTRY/fleet --filter-regex ^prod -o json")
	w.show("", "list artifacts oci://REGISTRY/fleet --filter-regex ^nothing")
	w.show("", "pull artifact oci://REGISTRY/fleet:production -o FOLDER/pulled")
	golden(t, "life.txt", w.out.String())
	text, err := os.ReadFile(filepath.Join(w.folder, "pulled", "app", "web.yaml"))
	if err != nil || string(text) != "kind: StatefulSet\n" {
		t.Errorf("pulled %q, error %v", text, err)
	}
}

// TestWhatIsThereAlready: what a registry has under another tag is not sent, and that is said.
func TestWhatIsThereAlready(t *testing.T) {
	w := newWorld(t, ociserver.New())
	for _, tag := range []string{"v1", "v2"} {
		w.show("", "push artifact oci://REGISTRY/fleet:"+tag+pushing)
	}
	golden(t, "again.txt", w.out.String())
}

// TestWrongCalls: what is wrong is one line that says what to do.
func TestWrongCalls(t *testing.T) {
	w := newWorld(t, ociserver.New())
	if err := os.MkdirAll(filepath.Join(w.folder, "pictures"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write("pictures/a.png", "P")
	for _, line := range []string{
		"push", "push artefact", "push artifact", "push artifact oci://REGISTRY/fleet:v1", "push artifact oci://REGISTRY/fleet:v1 -f FOLDER",
		"push artifact oci://REGISTRY/fleet:v1 -f FOLDER --source x", "push artifact REGISTRY/fleet:v1" + pushing,
		"push artifact oci://REGISTRY/fleet@sha256:abc" + pushing, "push artifact oci://REGISTRY/fleet:v1" + pushing + " -a nothing",
		"push artifact oci://REGISTRY/fleet:v1" + pushing + " --provider aws", "push artifact oci://REGISTRY/fleet:v1" + pushing + " --creds ann",
		"push artifact oci://REGISTRY/fleet:v1" + pushing + " -o wide", "push artifact oci://REGISTRY/fleet:v1" + pushing + " --key cosign.key",
		"push artifact oci://REGISTRY/fleet:v1" + pushing + " --sign", "push artifact oci://REGISTRY/fleet:v1" + pushing + " --sign --key awskms://x",
		"push artifact oci://REGISTRY/fleet:v1" + pushing + " --sign --key FOLDER/none", "push artifact oci://REGISTRY/fleet:v1" + pushing + " --sign --key FOLDER/fleet.yaml",
		"push artifact oci://REGISTRY/fleet:v1 -f FOLDER/none --source x --revision y", "push artifact oci://REGISTRY/fleet:v1 -f FOLDER/pictures --source x --revision y",
		"push artifact oci://REGISTRY/fleet:v1 -f - --source x --revision y",
		"pull artifact oci://REGISTRY/fleet:v1", "pull artifact oci://REGISTRY/fleet:v1 -o FOLDER/fleet.yaml", "pull artifact oci://REGISTRY/fleet:v1 -o FOLDER",
		"pull artifact oci://127.0.0.1:1/fleet:v1 -o FOLDER",
		"tag artifact oci://REGISTRY/fleet:v1", "tag artifact oci://REGISTRY/fleet:v1 --tag a/b", "tag artifact oci://REGISTRY/fleet:v1 --tag v2",
		"list", "list artifacts oci://REGISTRY/fleet:v1", "list artifacts oci://REGISTRY/fleet", "list artifacts oci://REGISTRY/fleet --filter-semver nope", "list artifacts oci://REGISTRY/fleet --filter-regex (",
		"diff", "diff -f app.yaml", "diff -f it's;here.yaml --server-side", "diff kustomization web --path ./web", "diff artifact oci://REGISTRY/fleet:v1", "diff artifact oci://REGISTRY/fleet:v1 -f FOLDER", "diff artifact oci://REGISTRY/fleet:v1 -f FOLDER/none",
	} {
		w.show("", line)
	}
	golden(t, "wrong.txt", w.out.String())
}

// TestHelp is what the commands say of themselves.
func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	for _, words := range [][]string{{"push"}, {"push", "artifact"}, {"pull", "artifact"}, {"tag", "artifact"}, {"list", "artifacts"}, {"diff", "artifact"}, {"diff"}} {
		root := commandtest.Root(artifacts.Commands)
		got := commandtest.Run(t.Context(), root, "", append(words, "--help")...)
		if got.Code != 0 || got.Err != "" {
			t.Errorf("%v: %+v", words, got)
		}
		own, _, _ := strings.Cut(got.Out, "\nGlobal Flags:")
		golden(t, "help-"+strings.Join(words, "-")+".txt", own)
	}
}

// keys writes a pair of keys as cosign does, and returns the file of the private one, and the trust in the other.
func keys(t *testing.T, password string) (file string, trust *cosign.Trust) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if content, err = encrypted.EncryptWithCustomKDFParameters(content, []byte(password), encrypted.Legacy); err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: content}), 0o600); err != nil {
		t.Fatal(err)
	}
	trust, err = cosign.ParseKeys(map[string][]byte{"ci.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})})
	if err != nil {
		t.Fatal(err)
	}
	return file, trust
}

// verified returns how many signatures of an artifact count, of those of either form.
func (w *world) verified(trust *cosign.Trust, tag string) (bundles, simple int) {
	w.t.Helper()
	remote, err := oci.NewRemote("oci://"+w.host+"/fleet", oci.Access{Insecure: true}, oci.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	if err != nil {
		w.t.Fatal(err)
	}
	defer remote.Close()
	target, err := remote.Resolve(w.t.Context(), oci.Ref{Tag: tag})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := remote.Signatures(target.Digest).Bundles(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, of := range all {
		if _, err := trust.Bundle(target.Digest, of.Content); err == nil {
			bundles++
		}
	}
	if all, err = remote.Signatures(target.Digest).Simple(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, of := range all {
		if _, err := trust.Simple(target.Digest, of.Content, of.Annotations); err == nil {
			simple++
		}
	}
	return bundles, simple
}

// TestSign: an OCIRepository verifies what was signed, and the same is not signed twice with one key.
func TestSign(t *testing.T) {
	for name, server := range map[string]*ociserver.Server{"a registry with lists": ociserver.NewWithReferrers(), "one without": ociserver.New()} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, server)
			file, trust := keys(t, canary)
			signing := "push artifact oci://REGISTRY/fleet:v1" + pushing + " --sign --key " + file
			if got := w.call("", signing); got.Code != 1 || got.Err != "error: "+file+": wrong password for the private key, or the key is damaged: put its password into $COSIGN_PASSWORD\n" {
				t.Errorf("without its password: %+v", got)
			}
			if len(server.Requests()) > 0 {
				t.Error("something was asked for before it was clear that it can be signed")
			}
			t.Setenv("COSIGN_PASSWORD", canary)
			for _, step := range []struct {
				line, ends      string
				bundles, simple int
			}{
				{signing, "\nsigned with " + file + "\n", 1, 0},
				{signing, "\nsigned with " + file + " before\n", 1, 0},
				{signing + " --signature-format simple", "\nsigned with " + file + "\n", 1, 1},
				{signing + " --signature-format simple", "\nsigned with " + file + " before\n", 1, 1},
				{signing + " -o json", "\"unchanged\": true,\n  \"signed\": true\n}\n", 1, 1},
			} {
				got := w.call("", step.line)
				if got.Code != 0 || !strings.HasSuffix(got.Out, step.ends) {
					t.Errorf("%s: %+v", step.line, got)
				}
				if bundles, simple := w.verified(trust, "v1"); bundles != step.bundles || simple != step.simple {
					t.Errorf("%s: %d bundles and %d simple signatures count", step.line, bundles, simple)
				}
			}
			if got := w.call("", "list artifacts oci://REGISTRY/fleet"); strings.Count(got.Out, "\n") != 2 {
				t.Errorf("signatures are listed:\n%s", got.Out)
			}
		})
	}
}

// TestLogins: the login of a flag, and that which docker login has kept.
func TestLogins(t *testing.T) {
	w := newWorld(t, ociserver.New())
	w.server.Answer(func(answer http.ResponseWriter, r *http.Request) bool {
		if user, password, given := r.BasicAuth(); given && user == "ann" && password == canary {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		answer.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		answer.WriteHeader(http.StatusUnauthorized)
		return true
	})
	line := "push artifact oci://REGISTRY/fleet:v1" + pushing
	for _, step := range []struct{ name, config, flags, err string }{
		{name: "none", err: "error: push to oci://REGISTRY/fleet: ask for the tag v1 of REGISTRY/fleet: access denied (HTTP 401): REGISTRY wants a login: docker login REGISTRY, or --creds USER:PASSWORD\n"},
		{name: "a wrong one", flags: " --creds bob:" + canary, err: "error: push to oci://REGISTRY/fleet: ask for the tag v1 of REGISTRY/fleet: access denied (HTTP 401): check the login for REGISTRY (--creds, or docker login REGISTRY), and whether it may write there\n"},
		{name: "of the flag", flags: " --creds ann:" + canary},
		{name: "of Docker", config: "ann:" + canary},
		{name: "of Docker, but the flag counts", config: "ann:" + canary, flags: " --creds bob:x", err: "error: push to oci://REGISTRY/fleet: ask for the tag v1 of REGISTRY/fleet: access denied (HTTP 401): check the login for REGISTRY (--creds, or docker login REGISTRY), and whether it may write there\n"},
	} {
		dir := t.TempDir()
		if step.config != "" {
			config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, w.host, base64.StdEncoding.EncodeToString([]byte(step.config)))
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("DOCKER_CONFIG", dir)
		got := w.call("", line+step.flags)
		if text := strings.ReplaceAll(got.Err, w.host, "REGISTRY"); text != step.err || (got.Code == 0) != (step.err == "") {
			t.Errorf("%s: code %d, error %q", step.name, got.Code, text)
		}
		if strings.Contains(got.Out+got.Err, canary) {
			t.Errorf("%s: a secret shows", step.name)
		}
	}
}

// TestForeignArtifacts: what others pushed does nothing to the machine of who pulls it.
func TestForeignArtifacts(t *testing.T) {
	w := newWorld(t, ociserver.New())
	for tag, test := range map[string]struct {
		files, annotations map[string]string
		layer              []byte
		says               string
	}{
		"up":     {files: map[string]string{"../up.yaml": "x"}, says: "error: oci://REGISTRY/fleet@DIGEST: malformed archive: the name \"../up.yaml\" leads out of the archive\n"},
		"static": {layer: []byte("kind: A"), says: "error: oci://REGISTRY/fleet@DIGEST: malformed archive: the layer is no gzipped tar\n"},
		"escape": {files: map[string]string{"a": "x"}, annotations: map[string]string{"org.opencontainers.image.revision": "\x1b[2J"}},
		"hooks": {files: map[string]string{".git/hooks/post-checkout": "x", "a": "x"},
			says: "warning: symbolic links, and what Git would take for its own, are left out: .git/hooks/post-checkout\n"},
	} {
		into := filepath.Join(t.TempDir(), "into")
		var err error
		if test.layer != nil {
			_, err = w.server.PushLayer(t.Context(), "fleet", tag, test.layer, nil)
		} else {
			_, err = w.server.Push(t.Context(), "fleet", tag, test.files, test.annotations)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := w.call("", "pull artifact oci://REGISTRY/fleet:"+tag+" -o "+into)
		if text := digests.ReplaceAllString(strings.ReplaceAll(got.Err, w.host, "REGISTRY"), "DIGEST"); text != test.says || strings.Contains(got.Out, "\x1b") {
			t.Errorf("%s: %q, error %q", tag, got.Out, text)
		}
		if _, err := os.Stat(filepath.Join(into, ".git")); err == nil {
			t.Errorf("%s: there is a .git", tag)
		}
		if _, err := os.Stat(into); (err == nil) == strings.HasPrefix(test.says, "error") {
			t.Errorf("%s: the folder is there, or is not: %v", tag, err)
		}
	}
}

// TestListOfADamagedTag: others are listed all the same, and the call fails.
func TestListOfADamagedTag(t *testing.T) {
	server := ociserver.New()
	w := newWorld(t, server)
	for _, tag := range []string{"a", "b", "c"} {
		if _, err := server.Push(t.Context(), "fleet", tag, map[string]string{"a.yaml": tag}, map[string]string{"org.opencontainers.image.revision": "main@" + tag}); err != nil {
			t.Fatal(err)
		}
	}
	server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/manifests/b") {
			return false
		}
		w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("a", 64))
		return true
	})
	w.show("", "list artifacts oci://REGISTRY/fleet")
	w.show("", "list artifacts oci://REGISTRY/fleet -o json")
	golden(t, "damaged.txt", w.out.String())
}
