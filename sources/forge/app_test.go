package forge_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/sources/forge"
)

// TestGitHubApp posts with the tokens of a GitHub App.
func TestGitHubApp(t *testing.T) {
	var got []string
	code := http.StatusCreated
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := r.Header.Get("Authorization")
		if strings.HasSuffix(r.URL.Path, "/access_tokens") {
			got = append(got, "token")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token": "ghs_%d", "expires_at": %q}`, len(got), time.Now().Add(time.Hour).Format(time.RFC3339))
			return
		}
		got = append(got, r.URL.Path+" "+auth)
		w.WriteHeader(code)
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(s.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app := map[string][]byte{
		"githubAppID": []byte("1"), "githubAppInstallationID": []byte("77"), "githubAppBaseURL": []byte(s.URL + "/api/v3"),
		"githubAppPrivateKey": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	authority := map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
	p, err := forge.New(forge.Provider{Type: "github", Address: s.URL + "/o/r", Secret: app, Certificates: authority}, forge.Options{Egress: reach})
	if err != nil {
		t.Fatal(err)
	}
	post := func() error {
		return p.Post(t.Context(), forge.Status{Commit: commit, Context: "x", State: forge.Success})
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	code = http.StatusUnauthorized
	if err := post(); !errors.Is(err, forge.ErrUnauthorized) {
		t.Errorf("error = %v, want ErrUnauthorized", err)
	}
	code = http.StatusCreated
	if err := post(); err != nil {
		t.Error(err)
	}
	var tokens []string
	for _, request := range got {
		if _, auth, posted := strings.Cut(request, " "); posted {
			request = auth
		}
		if len(tokens) == 0 || tokens[len(tokens)-1] != request {
			tokens = append(tokens, request)
		}
	}
	if len(tokens) != 4 || tokens[0] != "token" || tokens[2] != "token" || tokens[1] == tokens[3] || !strings.HasPrefix(tokens[1], "Bearer ghs_") {
		t.Errorf("requests = %q, want a token, posts with it, and after a refusal another", got)
	}
	for kind, path := range paths {
		_, err := forge.New(forge.Provider{Type: kind, Address: s.URL + path, Secret: app}, forge.Options{Egress: reach})
		if kind == "github" {
			continue
		}
		if !errors.Is(err, forge.ErrProvider) || !strings.Contains(err.Error(), "for the type github alone") {
			t.Errorf("%s: error = %v", kind, err)
		}
	}
	if _, err := forge.New(forge.Provider{Type: forge.TypeGitNotes, Address: s.URL + "/o/r", Secret: app}, forge.Options{}); !errors.Is(err, forge.ErrProvider) {
		t.Errorf("git-notes: error = %v, want ErrProvider", err)
	}
}
