package git_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1" //nolint:gosec // what Git's packs are made with
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
)

// canary is the secret that must never appear in an error.
const canary = "CANARY-0f9d2c"

func credentials(t *testing.T, url string, secret map[string]string) git.Credentials {
	t.Helper()
	data := map[string][]byte{}
	for k, v := range secret {
		data[k] = []byte(v)
	}
	c, err := git.ParseCredentials(url, data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hangingServer(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release); s.Close() })
	return s.URL + "/app.git"
}

// fetchMain resolves and fetches branch main, and returns the first error.
func fetchMain(ctx context.Context, r *git.Remote) error {
	commit, err := r.Resolve(ctx, git.Ref{Branch: "main"})
	if err != nil {
		return err
	}
	tree, err := r.Fetch(ctx, commit)
	if err != nil {
		return err
	}
	return tree.Close()
}

func noCanary(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Errorf("a secret shows in: %v", err)
	}
}

func TestHTTPCredentials(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer "+canary && (user != "bot" || password != canary) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer private.Close()
	url := private.URL + "/app.git"
	byToken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != canary || password != "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer byToken.Close()
	tokenURL := byToken.URL + "/app.git"
	cases := map[string]struct {
		url     string
		secret  map[string]string
		wantErr error
		says    string
	}{
		"basic authentication":        {url: url, secret: map[string]string{"username": "bot", "password": canary}},
		"a bearer token":              {url: url, secret: map[string]string{"bearerToken": canary}},
		"credentials in the URL":      {url: strings.Replace(url, "http://", "http://bot:"+canary+"@", 1)},
		"a token alone in the URL":    {url: strings.Replace(tokenURL, "http://", "http://"+canary+"@", 1)},
		"none":                        {url: url, wantErr: git.ErrUnauthorized, says: "name a Secret in spec.secretRef"},
		"wrong ones":                  {url: url, secret: map[string]string{"username": "bot", "password": canary + "x"}, wantErr: git.ErrUnauthorized, says: "check the credentials"},
		"wrong ones in the URL":       {url: strings.Replace(url, "http://", "http://bot:"+canary+"x@", 1), wantErr: git.ErrUnauthorized, says: "http://***@"},
		"a repository that is gone":   {url: private.URL + "/gone.git", secret: map[string]string{"bearerToken": canary}, wantErr: git.ErrRepositoryNotFound},
		"a page that is not Git":      {url: htmlPage(t), wantErr: git.ErrMalformed, says: "not a Git repository"},
		"a Secret prefers to the URL": {url: strings.Replace(url, "http://", "http://bot:wrong@", 1), secret: map[string]string{"bearerToken": canary}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(tc.url, credentials(t, tc.url, tc.secret), git.Options{})
			err := fetchMain(t.Context(), remote)
			if !errors.Is(err, tc.wantErr) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want %v saying %q", err, tc.wantErr, tc.says)
			}
			noCanary(t, err)
		})
	}
}

func htmlPage(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

func TestParseCredentials(t *testing.T) {
	_, identity := newSigner(t)
	cases := map[string]struct {
		url    string
		secret map[string]string
		says   string
	}{
		"a username without a password":       {url: "https://h/r", secret: map[string]string{"username": canary}, says: "go together"},
		"a password and a token":              {url: "https://h/r", secret: map[string]string{"username": "u", "password": canary, "bearerToken": canary}, says: "exclude each other"},
		"an authority that is no certificate": {url: "https://h/r", secret: map[string]string{"ca.crt": canary}, says: "ca.crt"},
		"a certificate without its key":       {url: "https://h/r", secret: map[string]string{"tls.crt": canary}, says: "tls.crt and tls.key go together"},
		"a certificate that is none":          {url: "https://h/r", secret: map[string]string{"tls.crt": canary, "tls.key": canary}, says: "are not a PEM certificate"},
		"half a GitHub App":                   {url: "https://h/r", secret: map[string]string{"githubAppID": "1"}, says: "keys githubAppID and githubAppPrivateKey go together"},
		"ssh without an identity":             {url: "ssh://h/r", secret: map[string]string{"known_hosts": "h"}, says: "key identity is missing"},
		"ssh without known_hosts":             {url: "ssh://h/r", secret: map[string]string{"identity": string(identity)}, says: "never trusted on first use"},
		"an identity that takes minutes":      {url: "ssh://h/r", secret: map[string]string{"identity": strings.Repeat(canary, 1000), "known_hosts": "h ssh-ed25519 AAAA"}, says: "key identity: a private key of more than 8192 bytes is not read"},
		"a client's key that takes minutes":   {url: "https://h/r", secret: map[string]string{"tls.crt": canary, "tls.key": strings.Repeat(canary, 1000)}, says: "key tls.key: a private key of more than 8192 bytes is not read"},
		"an identity that is no key":          {url: "ssh://h/r", secret: map[string]string{"identity": canary, "known_hosts": ""}, says: "known_hosts is missing"},
		"known_hosts that does not parse":     {url: "ssh://h/r", secret: map[string]string{"identity": string(identity), "known_hosts": "nonsense"}, says: "known_hosts does not parse"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.secret {
				data[k] = []byte(v)
			}
			_, err := git.ParseCredentials(tc.url, data)
			if !errors.Is(err, git.ErrCredentials) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want ErrCredentials saying %q", err, tc.says)
			}
			noCanary(t, err)
		})
	}
	c := credentials(t, "https://h/r", map[string]string{"bearerToken": canary})
	if s := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(s, canary) {
		t.Errorf("credentials print as %s", s)
	}
}

func TestRedirects(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	leaked := false
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = leaked || r.Header.Get("Authorization") != ""
		front.ServeHTTP(w, r)
	}))
	defer other.Close()
	redirect := func(to func(r *http.Request) string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to(r), http.StatusMovedPermanently)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/app.git"
	}
	otherHost := strings.TrimPrefix(other.URL, "http://")
	cases := map[string]struct {
		url     string
		wantErr error
	}{
		"to another host, which gets no credentials": {url: redirect(func(r *http.Request) string { return other.URL + r.URL.String() })},
		"with user information, which is dropped":    {url: redirect(func(r *http.Request) string { return "http://x:y@" + otherHost + r.URL.String() })},
		"in circles":                                {url: redirect(func(r *http.Request) string { return "http://" + r.Host + r.URL.String() }), wantErr: git.ErrRedirect},
		"to another scheme":                         {url: redirect(func(*http.Request) string { return "ftp://example.com/" }), wantErr: git.ErrRedirect},
		"to the metadata address":                   {url: redirect(func(r *http.Request) string { return "http://169.254.169.254" + r.URL.String() }), wantErr: git.ErrRedirect},
		"to something that is not the list of refs": {url: redirect(func(*http.Request) string { return other.URL + "/elsewhere" }), wantErr: git.ErrRepositoryNotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			leaked = false
			remote := f.remote(tc.url, credentials(t, tc.url, map[string]string{"username": "bot", "password": canary}), git.Options{})
			err := fetchMain(t.Context(), remote)
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
			if leaked {
				t.Error("credentials were sent to the other host")
			}
			noCanary(t, err)
		})
	}
}

func TestRenamedRepositoryKeepsCredentials(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/old.git") {
			http.Redirect(w, r, strings.Replace(r.URL.String(), "/old.git", "/app.git", 1), http.StatusMovedPermanently)
			return
		}
		front.ServeHTTP(w, r)
	}))
	defer s.Close()
	url := s.URL + "/old.git"
	if err := fetchMain(t.Context(), f.remote(url, credentials(t, url, map[string]string{"username": "bot", "password": canary}), git.Options{})); err != nil {
		t.Error(err)
	}
}

func TestRedirectInTheMiddleOfATransfer(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	followed := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed = true }))
	defer other.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					http.Redirect(w, r, other.URL, code)
					return
				}
				front.ServeHTTP(w, r)
			}))
			defer s.Close()
			err := fetchMain(t.Context(), f.remote(s.URL+"/app.git", git.Credentials{}, git.Options{}))
			if !errors.Is(err, git.ErrRedirect) || followed {
				t.Errorf("error = %v, followed: %t; want ErrRedirect", err, followed)
			}
		})
	}
}

func TestSpoolLeavesNoNameBehind(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": "one\n"})
	dir := t.TempDir()
	remote, err := git.NewRemote(f.url, git.Credentials{}, git.Options{TempDir: dir, Egress: egress.Dialer{Networks: loopback}})
	if err != nil {
		t.Fatal(err)
	}
	commit, err := remote.Resolve(t.Context(), git.Ref{Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := remote.Fetch(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	// No file may have a name: a process that is killed now could not remove it.
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("while a tree is open, its folder has %v, %v", entries, err)
	}
	if text, err := tree.ReadFile("a.yaml"); err != nil || string(text) != "one\n" {
		t.Errorf("a.yaml = %q, %v", text, err)
	}
}

func TestRedirectFromPublicToPrivate(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	inside := httptest.NewServer(f.front())
	defer inside.Close()
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL+r.URL.String(), http.StatusFound)
	}))
	defer outside.Close()
	dialed := ""
	opts := git.Options{Egress: egress.Dialer{
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "93.184.215.14:") {
				address = strings.TrimPrefix(outside.URL, "http://")
			} else {
				dialed = address
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	err := fetchMain(t.Context(), f.remote("http://git.example.com/app.git", git.Credentials{}, opts))
	if !errors.Is(err, git.ErrRedirect) {
		t.Errorf("error = %v, want ErrRedirect", err)
	}
	if dialed != "" {
		t.Errorf("a connection to %s was made", dialed)
	}
}

func TestTLS(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	front := f.front()
	secure := httptest.NewTLSServer(front)
	defer secure.Close()
	plain := httptest.NewServer(front)
	defer plain.Close()
	downgrade := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.String(), http.StatusFound)
	}))
	defer downgrade.Close()
	authority := func(s *httptest.Server) map[string]string {
		return map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))}
	}
	cases := map[string]struct {
		url     string
		secret  map[string]string
		wantErr error
	}{
		"with the authority":              {url: secure.URL, secret: authority(secure)},
		"without the authority":           {url: secure.URL, wantErr: git.ErrTLS},
		"a certificate for another name":  {url: strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), secret: authority(secure), wantErr: git.ErrTLS},
		"a server that does not speak it": {url: strings.Replace(plain.URL, "http://", "https://", 1), wantErr: git.ErrTLS},
		"a redirect down to http":         {url: downgrade.URL, secret: authority(downgrade), wantErr: git.ErrRedirect},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := tc.url + "/app.git"
			err := fetchMain(t.Context(), f.remote(url, credentials(t, url, tc.secret), git.Options{}))
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
		})
	}
}

// pkt frames a line of Git's protocol.
func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

// hostile returns the URL of a server with one ref that answers any fetch with
// the given body.
func hostile(t *testing.T, body []byte) string {
	t.Helper()
	hash := strings.Repeat("ab", 20)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, pkt("# service=git-upload-pack\n"), "0000", pkt(hash+" refs/heads/main\x00ofs-delta\n"), "0000")
			return
		}
		_, _ = w.Write(append([]byte(pkt("NAK\n")), body...))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/app.git"
}

// packOf frames entries as a pack.
func packOf(entries ...[]byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte("PACK"), 2)
	out = binary.BigEndian.AppendUint32(out, uint32(len(entries)))
	for _, e := range entries {
		out = append(out, e...)
	}
	sum := sha1.Sum(out) //nolint:gosec // the format's own checksum
	return append(out, sum[:]...)
}

// entry frames an object of a type with a stated size and a deflated content.
func entry(kind byte, size uint64, base, content []byte) []byte {
	head := kind<<4 | byte(size&15)
	size >>= 4
	var out []byte
	for size > 0 {
		out = append(out, head|0x80)
		head = byte(size & 0x7f)
		size >>= 7
	}
	out = append(append(out, head), base...)
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	_, _ = z.Write(content)
	_ = z.Close()
	return append(out, deflated.Bytes()...)
}

func TestHostileTransfers(t *testing.T) {
	zeros := make([]byte, 8<<20)
	huge := binary.AppendUvarint(binary.AppendUvarint(nil, 1), 1<<40)
	cases := map[string]struct {
		body    []byte
		wantErr error
	}{
		"nothing":                          {body: nil, wantErr: git.ErrMalformed},
		"not a pack":                       {body: []byte("<html>"), wantErr: git.ErrMalformed},
		"half a pack":                      {body: packOf(entry(3, 5, nil, []byte("hello")))[:20], wantErr: git.ErrMalformed},
		"an object that unpacks to more":   {body: packOf(entry(3, 5, nil, zeros)), wantErr: git.ErrMalformed},
		"an object that says it is huge":   {body: packOf(entry(3, 1<<40, nil, nil)), wantErr: git.ErrTooLarge},
		"more objects than memory":         {body: append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), 1<<31), zeros[:64]...), wantErr: git.ErrTooLarge},
		"a delta that makes a huge object": {body: packOf(entry(3, 1, nil, []byte("x")), entry(7, uint64(len(huge)), zeros[:20], huge)), wantErr: git.ErrTooLarge},
		"a delta without a base":           {body: packOf(entry(7, 3, zeros[:20], []byte{1, 1, 1})), wantErr: git.ErrMalformed},
		"a delta that refers to itself":    {body: packOf(entry(6, 3, []byte{0}, []byte{1, 1, 1})), wantErr: git.ErrMalformed},
		"a pack without the commit":        {body: packOf(entry(3, 5, nil, []byte("hello"))), wantErr: git.ErrRefNotFound},
		"an error in words":                {body: []byte(pkt("ERR upload-pack: not our ref")), wantErr: git.ErrMalformed},
		"an endless stream of nothing":     {body: bytes.Repeat([]byte(pkt("NAK\n")), 1<<17), wantErr: git.ErrTooLarge},
	}
	f := &fixture{t: t}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(hostile(t, tc.body), git.Credentials{}, git.Options{Limits: git.Limits{Pack: 256 << 10}})
			if err := fetchMain(t.Context(), remote); !errors.Is(err, tc.wantErr) {
				t.Errorf("error = %v, want %v", err, tc.wantErr)
			}
		})
	}
}

func TestServerFaultsAreRetriable(t *testing.T) {
	f := newFixture(t)
	f.commit("one", nil)
	f.server.OutOfOrder(true)
	remote := f.remote(f.url, git.Credentials{}, git.Options{})
	err := fetchMain(t.Context(), remote)
	if err == nil || !strings.Contains(err.Error(), "HTTP 503") {
		t.Errorf("error = %v, want one that names the status", err)
	}
	f.server.OutOfOrder(false)
	if err := fetchMain(t.Context(), remote); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}

func TestCutTransferIsAnError(t *testing.T) {
	f := newFixture(t)
	f.commit("one", map[string]string{"a.yaml": strings.Repeat("text\n", 10_000)})
	front := f.front()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			front.ServeHTTP(w, r)
			return
		}
		full := httptest.NewRecorder()
		front.ServeHTTP(full, r)
		w.Header().Set("Content-Length", fmt.Sprint(full.Body.Len()))
		_, _ = io.CopyN(w, full.Body, int64(full.Body.Len()/2))
	}))
	defer s.Close()
	if err := fetchMain(t.Context(), f.remote(s.URL+"/app.git", git.Credentials{}, git.Options{})); err == nil {
		t.Error("half a transfer was taken for a whole one")
	}
}
