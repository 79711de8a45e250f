package azureblob_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/azureblob"
	"github.com/flotilla-io/flotilla/sources/s3"
)

var start = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

const (
	endpoint = "https://shop.blob.core.windows.net"
	date     = "Tue, 01 Dec 2026 08:00:00 GMT"
)

var sharedKey = base64.StdEncoding.EncodeToString([]byte("key-of-the-account"))

// storage is an account with the container fleet, which sends two blobs in a page.
type storage struct {
	*httptest.Server
	t      *testing.T
	blobs  map[string]string
	answer http.HandlerFunc
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	s := &storage{t: t, blobs: map[string]string{"app/web.yaml": "one", "app/a b+ü.yaml": "two", "other": "three"}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

// remote returns the container, with what a Secret has.
func (s *storage) remote(secret map[string][]byte) *azureblob.Remote {
	s.t.Helper()
	access, err := azureblob.ParseAccess(secret)
	if err != nil {
		s.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	dialer := egress.Dialer{
		LookupNetIP: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("203.0.114.7")}, nil
		},
		Machine: func() ([]netip.Addr, error) { return nil, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
	way := egress.Way{TLS: &tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}}
	remote, err := azureblob.NewRemote(azureblob.Place{Endpoint: endpoint, Container: "fleet"}, access, way, s3.Options{Egress: dialer, Clock: clocktesting.NewFakePassiveClock(start)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(remote.Close)
	return remote
}

// allowed reports whether a request is signed by the key of the account, has the shared signature, or a token.
func allowed(req *http.Request) bool {
	query := req.URL.Query()
	if query.Get("sig") == "SIG/+=" && query.Get("sv") == "2021" || req.Header.Get("Authorization") == "Bearer token-1" {
		return true
	}
	text := "GET\n\n\n\n\n\n\n\n" + req.Header.Get("If-Match") + "\n" + req.Header.Get("If-None-Match") + "\n\n\n" +
		"x-ms-date:" + date + "\nx-ms-version:2021-12-02\n/shop" + strings.SplitN(req.RequestURI, "?", 2)[0]
	for _, name := range slices.Sorted(maps.Keys(query)) {
		text += "\n" + name + ":" + query.Get(name)
	}
	mac := hmac.New(sha256.New, []byte("key-of-the-account"))
	mac.Write([]byte(text))
	return req.Header.Get("Authorization") == "SharedKey shop:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// etag is the version of a blob.
func etag(content string) string { return fmt.Sprintf("0x%X", sha256.Sum256([]byte(content)))[:16] }

// ServeHTTP implements http.Handler.
func (s *storage) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/fleet/")
	content, found := s.blobs[name]
	switch {
	case s.answer != nil:
		s.answer(w, req)
	case req.Host == "login.microsoftonline.com":
		if req.URL.Path != "/t-1/oauth2/v2.0/token" || req.FormValue("client_secret") != "s-1" || req.FormValue("scope") != "https://storage.azure.com/.default" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"access_token": "token-1", "expires_in": 3600}`))
	case req.Host != "shop.blob.core.windows.net" || !allowed(req):
		w.WriteHeader(http.StatusForbidden)
	case req.URL.Path == "/fleet" && req.URL.Query().Get("comp") == "list" && req.URL.Query().Get("restype") == "container":
		s.list(w, req.URL.Query())
	case !found:
		w.WriteHeader(http.StatusNotFound)
	case req.Header.Get("If-Match") != "" && req.Header.Get("If-Match") != `"`+etag(content)+`"`:
		w.WriteHeader(http.StatusPreconditionFailed)
	case req.Header.Get("If-None-Match") == `"`+etag(content)+`"`:
		w.WriteHeader(http.StatusNotModified)
	default:
		w.Header().Set("ETag", `"`+etag(content)+`"`)
		_, _ = w.Write([]byte(content))
	}
}

func (s *storage) list(w http.ResponseWriter, query url.Values) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.blobs)), func(name string) bool {
		return !strings.HasPrefix(name, query.Get("prefix")) || name <= query.Get("marker")
	})
	next := ""
	if len(names) > 2 {
		names, next = names[:2], names[1]
	}
	_, _ = fmt.Fprint(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="x" ContainerName="fleet"><Blobs>`)
	for _, name := range names {
		_, _ = fmt.Fprint(w, "<Blob><Name>")
		_ = xml.EscapeText(w, []byte(name))
		_, _ = fmt.Fprintf(w, "</Name><Properties><Last-Modified>%s</Last-Modified><Etag>%s</Etag><Content-Length>%d</Content-Length></Properties></Blob>", date, etag(s.blobs[name]), len(s.blobs[name]))
	}
	_, _ = fmt.Fprintf(w, "</Blobs><NextMarker>%s</NextMarker></EnumerationResults>", next)
}

// TestContainer lists a container and reads what is in it, by each way to authenticate.
func TestContainer(t *testing.T) {
	for name, secret := range map[string]map[string][]byte{
		"the key of the account": {"accountKey": []byte(sharedKey + "\n")},
		"a shared signature":     {"sasKey": []byte("?sv=2021&sig=SIG%2F%2B%3D")},
		"an application":         {"tenantId": []byte("t-1"), "clientId": []byte("c-1"), "clientSecret": []byte("s-1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			remote := s.remote(secret)
			all, err := remote.List(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			var want []s3.Object
			for _, name := range slices.Sorted(maps.Keys(s.blobs)) {
				want = append(want, s3.Object{Key: name, ETag: etag(s.blobs[name]), Size: int64(len(s.blobs[name])), Modified: date})
			}
			if diff := cmp.Diff(want, all); diff != "" {
				t.Errorf("the list (-want +got):\n%s", diff)
			}
			for _, o := range all {
				if content, err := remote.Get(t.Context(), o); err != nil || string(content) != s.blobs[o.Key] {
					t.Errorf("%s: %q, %v", o.Key, content, err)
				}
			}
			if some, err := remote.List(t.Context(), "app/"); err != nil || len(some) != 2 {
				t.Errorf("below a prefix: %v, %v", some, err)
			}
			content, version, err := remote.Find(t.Context(), "other", "", 100)
			if err != nil || string(content) != "three" || version != etag("three") {
				t.Errorf("found %q, %s, %v", content, version, err)
			}
			if _, _, err := remote.Find(t.Context(), "other", version, 100); !errors.Is(err, s3.ErrSame) {
				t.Errorf("the same: %v", err)
			}
			s.blobs["other"] = "four!"
			if _, err := remote.Get(t.Context(), all[2]); !errors.Is(err, s3.ErrChanged) {
				t.Errorf("what has changed: %v", err)
			}
		})
	}
}

// TestFaults are told in the terms of package s3.
func TestFaults(t *testing.T) {
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if len(header) == 2 {
				w.Header().Set(header[0], header[1])
			}
			http.Error(w, "CANARY", code)
		}
	}
	const listing = "list the blobs of container fleet at shop.blob.core.windows.net: "
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		is     error
		want   string
	}{
		"no such container":     {status(404), s3.ErrNotFound, listing + "not found: there is no such container: check spec.bucketName and spec.endpoint"},
		"a key that is refused": {status(403), s3.ErrUnauthorized, listing + "access denied (HTTP 403): correct the Secret of spec.secretRef, or have who owns the account let it list the container and read its blobs (Storage Blob Data Reader)"},
		"a redirect":            {status(302, "Location", "https://elsewhere.test"), s3.ErrRedirect, listing + "redirect refused (HTTP 302)"},
		"a fault of the server": {status(500), nil, listing + "the server answered HTTP 500"},
		"a server that is busy": {status(503, "Retry-After", "7"), nil, listing + "the server is busy (HTTP 503), and wants to be left alone for 7s"},
		"no XML":                {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("CANARY")) }, s3.ErrMalformed, listing + "malformed answer: the list of blobs is no XML that is understood"},
		"a list without an end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<EnumerationResults><NextMarker>x</NextMarker></EnumerationResults>"))
		}, s3.ErrMalformed, listing + "malformed answer: the list has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			s.answer = tc.answer
			_, err := s.remote(map[string][]byte{"accountKey": []byte(sharedKey)}).List(t.Context(), "")
			if err == nil || err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("error %v\nwant  %s", err, tc.want)
			}
		})
	}
}

// TestWhatIsRefused names what is wrong with a spec or a Secret, and shows nothing of it.
func TestWhatIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		place azureblob.Place
		want  string
	}{
		"another host":          {azureblob.Place{Endpoint: "https://shop.blob.core.windows.net.evil.test", Container: "fleet"}, "unusable address: spec.endpoint of a container of Azure is https://ACCOUNT.blob.core.windows.net"},
		"without TLS":           {azureblob.Place{Endpoint: "http://shop.blob.core.windows.net", Container: "fleet"}, "unusable address: spec.endpoint of a container of Azure is https://ACCOUNT.blob.core.windows.net"},
		"what is no container":  {azureblob.Place{Endpoint: endpoint, Container: "a/../b"}, "unusable address: spec.bucketName is no name of a container"},
		"a container of Azures": {azureblob.Place{Endpoint: endpoint + "/", Container: "$web"}, ""},
	} {
		_, err := azureblob.NewRemote(tc.place, azureblob.Access{}, egress.Way{}, s3.Options{})
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, s3.ErrPlace) || err.Error() != tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		secret map[string][]byte
		want   string
	}{
		"nothing":                  {nil, "unusable credentials: it needs accountKey, or sasKey, or tenantId with clientId and clientSecret"},
		"an identity of a machine": {map[string][]byte{"clientId": []byte("CANARY")}, "unusable credentials: it needs accountKey, or sasKey, or tenantId with clientId and clientSecret"},
		"a key that is none":       {map[string][]byte{"accountKey": []byte("CANARY!")}, "unusable credentials: its accountKey is no base64"},
		"a signature that is none": {map[string][]byte{"sasKey": []byte("CANARY")}, "unusable credentials: its sasKey is no shared access signature, such as sv=…&sig=…"},
		"a certificate":            {map[string][]byte{"tenantId": []byte("t"), "clientId": []byte("c"), "clientCertificate": []byte("CANARY")}, "unusable credentials: its clientCertificate is not supported: use clientSecret"},
	} {
		if _, err := azureblob.ParseAccess(tc.secret); !errors.Is(err, s3.ErrCredentials) || err.Error() != tc.want {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
