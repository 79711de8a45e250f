package lfs_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/lfs"
)

const canary = "CANARY-51ce"

var loopback = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// server is a small Git LFS server, and store another host where content may be.
type server struct {
	*httptest.Server
	store    *httptest.Server
	contents map[string]string // by OID
	asked    []string          // "<host> <path> <authorization>" of each request
	// answer replaces the answer to the question where content is.
	answer func(w http.ResponseWriter, s *server)
	// serve replaces the answer with the content.
	serve http.HandlerFunc
}

func newServer(t *testing.T, contents ...string) *server {
	t.Helper()
	s := &server{contents: map[string]string{}}
	for _, content := range contents {
		s.contents[pointer(content).OID] = content
	}
	note := func(host string, next http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.asked = append(s.asked, strings.TrimSpace(host+" "+r.URL.Path+" "+r.Header.Get("Authorization")))
			next(w, r)
		})
	}
	download := func(w http.ResponseWriter, r *http.Request) {
		if s.serve != nil {
			s.serve(w, r)
			return
		}
		_, _ = w.Write([]byte(s.contents[r.URL.Path[1:]]))
	}
	s.store = httptest.NewServer(note("store", download))
	s.Server = httptest.NewServer(note("server", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/vnd.git-lfs+json" {
			download(w, r)
			return
		}
		if s.answer != nil {
			s.answer(w, s)
			return
		}
		var q struct{ Objects []struct{ OID string } }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		var out []string
		for _, o := range q.Objects {
			out = append(out, s.at(o.OID, s.store.URL+"/"+o.OID, ""))
		}
		s.say(w, out...)
	}))
	t.Cleanup(s.store.Close)
	t.Cleanup(s.Server.Close)
	return s
}

// at is what the server says of one file.
func (s *server) at(oid, href, header string) string {
	return fmt.Sprintf(`{"oid":%q,"size":1,"actions":{"download":{"href":%q,"header":{%s}}}}`, oid, href, header)
}

func (s *server) say(w http.ResponseWriter, objects ...string) {
	_, _ = w.Write([]byte(`{"transfer":"basic","objects":[` + strings.Join(objects, ",") + `]}`))
}

func pointer(content string) lfs.Pointer {
	sum := sha256.Sum256([]byte(content))
	return lfs.Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// TestFetch is about content that is had.
func TestFetch(t *testing.T) {
	s := newServer(t, "one", "two", "")
	got, err := lfs.Fetch(t.Context(), lfs.Source{URL: s.URL + "/acme/app.git", Egress: loopback, Credentials: git.Credentials{Username: "bot", Password: canary}},
		[]lfs.Pointer{pointer("one"), pointer("two"), pointer("one"), pointer("")})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for oid, content := range s.contents {
		want[oid] = []byte(content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	seen := map[string]int{}
	for _, asked := range s.asked {
		host, rest, _ := strings.Cut(asked, " ")
		seen[host+strings.Repeat(" with credentials", strings.Count(rest, "Basic"))]++
	}
	if diff := cmp.Diff(map[string]int{"server with credentials": 1, "store": 3}, seen); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestManyFiles: they are asked for in parts.
func TestManyFiles(t *testing.T) {
	var contents []string
	var all []lfs.Pointer
	for n := range 150 {
		contents = append(contents, fmt.Sprint(n))
		all = append(all, pointer(contents[n]))
	}
	s := newServer(t, contents...)
	got, err := lfs.Fetch(t.Context(), lfs.Source{URL: s.URL + "/app", Egress: loopback}, all)
	if err != nil || len(got) != 150 || len(s.asked) != 152 || s.asked[0] != "server /app.git/info/lfs/objects/batch" {
		t.Errorf("%d files by %d requests, the first is %v; %v", len(got), len(s.asked), s.asked[:1], err)
	}
}

// TestWhereCredentialsGo: to the repository's own origin, and what the server gave to the host that it named.
func TestWhereCredentialsGo(t *testing.T) {
	one := pointer("one").OID
	basic := "Basic Ym90OkNBTkFSWS01MWNl"
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, s *server)
		serve  http.HandlerFunc
		want   string // of the last request
	}{
		"content on the same origin": {func(w http.ResponseWriter, s *server) { s.say(w, s.at(one, s.URL+"/"+one, "")) }, nil, "server /" + one + " " + basic},
		"with a token of the server's": {func(w http.ResponseWriter, s *server) {
			s.say(w, s.at(one, s.URL+"/"+one, `"Authorization":"RemoteAuth x"`))
		}, nil, "server /" + one + " RemoteAuth x"},
		"on another host, with a token": {func(w http.ResponseWriter, s *server) {
			s.say(w, s.at(one, s.store.URL+"/"+one, `"Authorization":"RemoteAuth x"`))
		}, nil, "store /" + one + " RemoteAuth x"},
		"on another host, with a user": {func(w http.ResponseWriter, s *server) {
			s.say(w, s.at(one, strings.Replace(s.store.URL, "://", "://a:b@", 1)+"/"+one, ""))
		}, nil, "store /" + one},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "one")
			s.answer, s.serve = tc.answer, tc.serve
			from := lfs.Source{URL: strings.Replace(s.URL, "://", "://bot:"+canary+"@", 1) + "/app.git", Egress: loopback}
			if _, err := lfs.Fetch(t.Context(), from, []lfs.Pointer{pointer("one")}); err != nil {
				t.Fatal(err)
			}
			if got := s.asked[len(s.asked)-1]; got != tc.want || s.asked[0] != "server /app.git/info/lfs/objects/batch "+basic {
				t.Errorf("asked %q, want the last to be %q", s.asked, tc.want)
			}
		})
	}
	t.Run("a redirect to another host", func(t *testing.T) {
		s := newServer(t, "one")
		s.answer = func(w http.ResponseWriter, s *server) {
			s.say(w, s.at(one, s.URL+"/away", `"X-Token":"x","Authorization":"RemoteAuth x"`))
		}
		token := "none"
		s.serve = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/away" {
				http.Redirect(w, r, s.store.URL+"/"+one, http.StatusFound)
				return
			}
			token = r.Header.Get("X-Token") + r.Header.Get("Authorization")
			_, _ = w.Write([]byte("one"))
		}
		if _, err := lfs.Fetch(t.Context(), lfs.Source{URL: s.URL + "/app.git", Egress: loopback}, []lfs.Pointer{pointer("one")}); err != nil || token != "" {
			t.Errorf("%v, with the token %q", err, token)
		}
	})
}

// TestHostileAnswers is about servers that do not do what they should.
func TestHostileAnswers(t *testing.T) {
	one := pointer("one").OID
	say := func(objects ...string) func(http.ResponseWriter, *server) {
		return func(w http.ResponseWriter, s *server) { s.say(w, objects...) }
	}
	status := func(code int) func(http.ResponseWriter, *server) {
		return func(w http.ResponseWriter, _ *server) { w.WriteHeader(code); _, _ = w.Write([]byte(canary)) }
	}
	href := func(to string) func(http.ResponseWriter, *server) {
		return func(w http.ResponseWriter, s *server) { s.say(w, s.at(one, to, "")) }
	}
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, s *server)
		serve  http.HandlerFunc
		want   error // nil: any
	}{
		"no credentials": {answer: status(http.StatusUnauthorized), want: git.ErrUnauthorized},
		"no Git LFS":     {answer: status(http.StatusNotFound), want: lfs.ErrUnusable},
		"a fault":        {answer: status(http.StatusBadGateway)},
		"no JSON":        {answer: func(w http.ResponseWriter, _ *server) { _, _ = w.Write([]byte("<html>" + canary)) }, want: lfs.ErrUnusable},
		"an endless answer": {answer: func(w http.ResponseWriter, _ *server) {
			_, _ = w.Write([]byte(`{"objects":[` + strings.Repeat(" ", 2<<20) + "]}"))
		}, want: lfs.ErrUnusable},
		"another transfer":         {answer: func(w http.ResponseWriter, _ *server) { _, _ = w.Write([]byte(`{"transfer":"tus"}`)) }, want: lfs.ErrUnusable},
		"nothing about the file":   {answer: say(), want: lfs.ErrUnusable},
		"that it does not have it": {answer: say(`{"oid":"` + one + `","error":{"code":404,"message":"` + canary + `"}}`), want: lfs.ErrUnusable},
		"where another file is":    {answer: say(`{"oid":"` + oid + `","actions":{"download":{"href":"http://x/"}}}`), want: lfs.ErrUnusable},
		"a file of its own":        {answer: href("file:///etc/passwd"), want: lfs.ErrUnusable},
		"no host":                  {answer: href("/" + one), want: lfs.ErrUnusable},
		"where no source may be":   {answer: href("http://169.254.169.254/latest"), want: egress.ErrNotAllowed},
		"far too many headers":     {answer: func(w http.ResponseWriter, s *server) { s.say(w, s.at(one, s.URL, headers(40))) }, want: lfs.ErrUnusable},
		"a header that is two":     {answer: func(w http.ResponseWriter, s *server) { s.say(w, s.at(one, s.URL, `"X":"a\r\nHost: b"`)) }},
		"other content":            {serve: text("two"), want: lfs.ErrUnusable},
		"less content":             {serve: text("on"), want: lfs.ErrUnusable},
		"more content":             {serve: text("one more"), want: lfs.ErrUnusable},
		"content that is gone":     {serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, want: lfs.ErrUnusable},
		"a redirect to a file": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, want: git.ErrRedirect},
		"a redirect to itself": {serve: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, want: git.ErrRedirect},
		"a redirect to our own network": {serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, want: egress.ErrNotAllowed},
		"a redirect of the question": {answer: func(w http.ResponseWriter, s *server) {
			w.Header().Set("Location", s.store.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, want: git.ErrRedirect},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "one")
			s.answer, s.serve = tc.answer, tc.serve
			got, err := lfs.Fetch(t.Context(), lfs.Source{URL: s.URL + "/app.git", Egress: loopback}, []lfs.Pointer{pointer("one")})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || got != nil {
				t.Fatalf("%v, %v; want %v", got, err, tc.want)
			}
			if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "passwd") {
				t.Errorf("the error shows what was answered: %v", err)
			}
		})
	}
}

// TestAServerWithoutLFS is named with its address, and says what it lacks.
func TestAServerWithoutLFS(t *testing.T) {
	s := newServer(t, "one")
	s.answer = func(w http.ResponseWriter, _ *server) { w.WriteHeader(http.StatusNotFound) }
	at := strings.Replace(s.URL, "http://", "http://bob:"+canary+"@", 1)
	_, err := lfs.Fetch(t.Context(), lfs.Source{URL: at + "/app.git", Egress: loopback}, []lfs.Pointer{pointer("one")})
	if want := s.URL + "/app.git/info/lfs: the server does not serve Git LFS (HTTP 404)"; err == nil || err.Error() != want || !errors.Is(err, lfs.ErrUnusable) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func headers(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"X-%d":"x"`, i))
	}
	return strings.Join(out, ",")
}

// TestAPublicRepositoryLeadsNowhereElse: its content is at public addresses, also
// where an administrator allows others.
func TestAPublicRepositoryLeadsNowhereElse(t *testing.T) {
	s := newServer(t, "one")
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	reach := egress.Dialer{
		Networks: loopback.Networks,
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.Replace(address, "93.184.216.34:80", at.Host, 1))
		},
	}
	if _, err := lfs.Fetch(t.Context(), lfs.Source{URL: "http://git.example/app.git", Egress: reach}, []lfs.Pointer{pointer("one")}); !errors.Is(err, egress.ErrNotAllowed) {
		t.Errorf("content in our network: %v", err)
	}
	one := pointer("one").OID
	s.answer = func(w http.ResponseWriter, s *server) { s.say(w, s.at(one, "http://git.example/"+one, "")) }
	got, err := lfs.Fetch(t.Context(), lfs.Source{URL: "http://git.example/app.git", Egress: reach}, []lfs.Pointer{pointer("one")})
	if err != nil || !maps.EqualFunc(got, map[string]string{one: "one"}, func(a []byte, b string) bool { return string(a) == b }) {
		t.Errorf("content beside it: %v, %v", got, err)
	}
}

// TestSSHHasNoContent: it is refused by name.
func TestSSHHasNoContent(t *testing.T) {
	_, err := lfs.Fetch(t.Context(), lfs.Source{URL: "ssh://git@h.example/app.git"}, []lfs.Pointer{pointer("one")})
	if want := "unusable Git LFS: content is fetched over http and https alone, and spec.url is ssh"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}
