package cloudtoken_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/sources/cloudtoken"
)

const canary = "CANARY-4410"

var start = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

// server answers as one that gives out tokens.
type server struct {
	status int
	body   string
	asked  []url.Values
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(content))
	if err != nil {
		return nil, err
	}
	form.Set("URL", req.Method+" "+req.URL.String())
	s.asked = append(s.asked, form)
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

func azure(t *testing.T) cloudtoken.Login {
	t.Helper()
	application, err := cloudtoken.ParseAzure([]byte("tenantId: t-1\nclientId: c-1\nclientSecret: " + canary + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	login, err := application.At(cloudtoken.AzurePublic, "https://storage.azure.com/.default")
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %#v %v %#v", application, application, login, login); strings.Contains(shown, canary) {
		t.Errorf("it prints as %s", shown)
	}
	return login
}

// TestToken: a token is kept until a minute before it ends, and for an hour at most.
func TestToken(t *testing.T) {
	s := &server{status: http.StatusOK, body: `{"access_token": "one", "expires_in": 600}`}
	clock := clocktesting.NewFakePassiveClock(start)
	source := cloudtoken.NewSource(azure(t), &http.Client{Transport: s}, clock)
	get := func(want string) {
		t.Helper()
		if got, err := source.Token(t.Context()); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	get("one")
	want := []url.Values{{
		"URL": {"POST https://login.microsoftonline.com/t-1/oauth2/v2.0/token"}, "grant_type": {"client_credentials"}, "client_id": {"c-1"},
		"client_secret": {canary}, "scope": {"https://storage.azure.com/.default"},
	}}
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	s.body = `{"access_token": "two", "expires_in": 999999999}`
	clock.SetTime(start.Add(8 * time.Minute))
	get("one")
	clock.SetTime(start.Add(9 * time.Minute))
	get("two")
	s.body = `{"access_token": "three"}`
	clock.SetTime(start.Add((9 + 58) * time.Minute))
	get("two")
	clock.SetTime(start.Add((9 + 59) * time.Minute))
	get("three")
	get("three") // which does not say how long it lasts
	if len(s.asked) != 4 {
		t.Errorf("asked %d times", len(s.asked))
	}
}

// TestRefused shows nothing of what was sent, nor of the answer.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		server server
		is     error
		want   string
	}{
		"a login that is refused": {server{status: 401, body: canary}, cloudtoken.ErrRefused, "no token is given out by login.microsoftonline.com (HTTP 401)"},
		"a server that is busy":   {server{status: 503, body: canary}, nil, "ask login.microsoftonline.com for a token: it answers HTTP 503"},
		"no token":                {server{status: 200, body: "{}"}, nil, "ask login.microsoftonline.com for a token: the answer makes no sense: is this the right server, and the right port?"},
		"no text for a header":    {server{status: 200, body: `{"access_token": "a\r\nb"}`}, nil, "ask login.microsoftonline.com for a token: the answer makes no sense: is this the right server, and the right port?"},
	} {
		t.Run(name, func(t *testing.T) {
			source := cloudtoken.NewSource(azure(t), &http.Client{Transport: &tc.server}, clocktesting.NewFakePassiveClock(start))
			_, err := source.Token(t.Context())
			if err == nil || err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) || tc.is == nil && errors.Is(err, cloudtoken.ErrRefused) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestLogins are what Secrets have.
func TestLogins(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account := func(key string) string {
		text, err := json.Marshal(map[string]string{"type": "service_account", "client_email": "a@b", "private_key": key})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	google := func(text string) error { _, err := cloudtoken.ParseGoogle([]byte(text), "scope"); return err }
	inAzure := func(text string) error { _, err := cloudtoken.ParseAzure([]byte(text)); return err }
	for name, tc := range map[string]struct {
		read       func(string) error
		text, want string
	}{
		"a service account":          {google, account(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), ""},
		"one without PEM":            {google, account(canary), "unusable credentials: its private_key is no PEM"},
		"one with another key":       {google, account("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "unusable credentials: its private_key is no RSA key in PKCS 8"},
		"one with a long key":        {google, account(strings.Repeat("A", 9000)), "unusable credentials: a private key of more than 8192 bytes is not read: use one of at most 8192 bits"},
		"a user of Google":           {google, `{"type": "authorized_user", "refresh_token": "` + canary + `"}`, "unusable credentials: it has to be the JSON key of a service account, as gcloud iam service-accounts keys create writes it"},
		"as Azure's command line":    {inAzure, `{"appId": "a", "tenant": "b", "password": "c"}`, ""},
		"a tenant that is no name":   {inAzure, "tenantId: ../x\nclientId: c\nclientSecret: " + canary, "unusable credentials: it takes tenantId, clientId and clientSecret"},
		"a managed identity":         {inAzure, "clientId: c", "unusable credentials: it takes tenantId, clientId and clientSecret"},
		"a certificate":              {inAzure, "tenantId: b\nclientId: c\nclientCertificate: " + canary, "unusable credentials: a clientCertificate is not supported: use a clientSecret"},
		"what is no YAML":            {inAzure, "\t" + canary, "unusable credentials: it is no YAML with tenantId, clientId and clientSecret"},
		"an application, as in Flux": {inAzure, "tenantId: b\nclientId: c\nclientSecret: d", ""},
	} {
		err := tc.read(tc.text)
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, cloudtoken.ErrLogin) || err.Error() != tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
