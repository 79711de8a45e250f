package push_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/push"
)

// TestTokens: a registry that gives tokens is asked once for one that does for all of a push.
func TestTokens(t *testing.T) {
	const mayRead, mayWrite = "repository:app:pull", "repository:app:pull,push"
	server := ociserver.New()
	var asked []string
	server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			user, password, _ := r.BasicAuth()
			asked = append(asked, user+" "+password+" "+r.URL.Query().Get("scope"))
			_, _ = fmt.Fprintf(w, `{"token": %q}`, r.URL.Query().Get("scope"))
			return true
		}
		wants := mayWrite
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			wants = mayRead
		}
		if has := r.Header.Get("Authorization"); has == "Bearer "+mayWrite || has == "Bearer "+wants {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="test",scope=%q`, r.Host, wants))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	f := newFixture(t, server, oci.Login{Username: "ann", Password: "secret"}, push.Options{})
	must[push.Pushed](t)(f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"})))
	if diff := cmp.Diff([]string{"ann secret " + mayWrite}, asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// TestUploadsElsewhere: where a registry has content sent to another server, the login does not go along.
func TestUploadsElsewhere(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s login=%q as=%s %d bytes", r.Method, r.URL.Path, r.Header.Get("Authorization"), r.URL.Query().Get("as"), len(content)))
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(other.Close)
	server := ociserver.New()
	server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if _, _, given := r.BasicAuth(); !given {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		if r.Method == http.MethodPost {
			w.Header().Set("Location", other.URL+"/store?as=it")
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		return false
	})
	f := newFixture(t, server, oci.Login{Username: "ann", Password: canary}, push.Options{})
	artifact := web(t, map[string]string{"a": "A"})
	done := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", artifact))
	layer := len(artifact.Layer)
	want := []string{fmt.Sprintf(`PUT /store login="" as=it %d bytes`, layer), fmt.Sprintf(`PUT /store login="" as=it %d bytes`, int(done.Sent)-layer)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sent elsewhere (-want +got):\n%s", diff)
	}
}
