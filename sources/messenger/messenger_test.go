package messenger_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/sources/githubapp"
	"github.com/flotilla-io/flotilla/sources/messenger"
)

// canary must never show.
const canary = "s3cret"

func loopback() egress.Dialer {
	return egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

func send(ctx context.Context, t *testing.T, out egress.Dialer, to messenger.Target, address string) error {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if to.Timeout == 0 {
		to.Timeout = 10 * time.Second
	}
	r := message.Request{Method: http.MethodPost, URL: u, Header: map[string]string{"Authorization": "Bearer " + canary, "Content-Type": "application/json"}, Body: []byte(`{"a":1}`)}
	return messenger.New(out, githubapp.NewTokens(clock.RealClock{})).Send(ctx, to, r)
}

func TestSend(t *testing.T) {
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("User-Agent")+" "+string(body))
	}))
	defer receiver.Close()
	if err := send(t.Context(), t, loopback(), messenger.Target{}, receiver.URL+"/hook?key=k"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`POST /hook?key=k Bearer s3cret flotilla {"a":1}`}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

// TestAnswers: each means something, and nothing of it shows.
func TestAnswers(t *testing.T) {
	answer := func(code int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tc := range map[string]struct {
		kind    string
		handler http.HandlerFunc
		want    string
		is      error
		later   time.Duration // -1: it may be tried at any time
	}{
		"taken":                       {handler: answer(202, canary)},
		"taken, with a long answer":   {handler: answer(200, strings.Repeat(canary, 1<<16))},
		"too many":                    {handler: answer(429, canary, "Retry-After", "17"), want: "the receiver answers HTTP 429 Too Many Requests", later: 17 * time.Second},
		"too many, for parts of one":  {handler: answer(429, canary, "Retry-After", "0.5"), want: "the receiver answers HTTP 429 Too Many Requests", later: time.Second / 2},
		"too many, for ever":          {handler: answer(429, canary, "Retry-After", "1e300"), want: "the receiver answers HTTP 429 Too Many Requests", later: time.Hour},
		"too many, until who knows":   {handler: answer(429, canary, "Retry-After", "NaN"), want: "the receiver answers HTTP 429 Too Many Requests", later: -1},
		"down":                        {handler: answer(503, canary), want: "the receiver answers HTTP 503 Service Unavailable", later: -1},
		"it redirects":                {handler: answer(302, canary, "Location", "http://127.0.0.1:1/"+canary), want: "message refused: it redirects (HTTP 302 Found), which is not followed: correct the address", is: messenger.ErrRefused},
		"another token is needed":     {handler: answer(403, canary), want: "message refused (HTTP 403 Forbidden): check the credentials in the Secret of the Provider, or name one there", is: messenger.ErrRefused},
		"nobody is there":             {handler: answer(404, canary), want: "message refused (HTTP 404 Not Found): check the address of the Provider", is: messenger.ErrRefused},
		"no message of that type":     {handler: answer(400, canary), want: "message refused (HTTP 400 Bad Request): check the type and the address of the Provider", is: messenger.ErrRefused},
		"Slack says no by a success":  {kind: "slack", handler: answer(200, `{"ok":false,"error":"`+canary+`"}`), want: "message refused: Slack refuses the message", is: messenger.ErrRefused},
		"it ends within its headers":  {handler: hijack("HTTP/1.1 200"), want: "the server ended the connection: unexpected EOF"},
		"it speaks something else":    {handler: hijack("SSH-2.0-" + canary + "\r\n"), want: "the answer makes no sense: is this the right server, and the right port?"},
		"a success that is cut short": {handler: hijack("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")},
	} {
		t.Run(name, func(t *testing.T) {
			receiver := httptest.NewServer(tc.handler)
			defer receiver.Close()
			err := send(t.Context(), t, loopback(), messenger.Target{Provider: message.Provider{Type: tc.kind}}, receiver.URL+"/"+canary)
			text := ""
			if err != nil {
				text = strings.TrimPrefix(err.Error(), "send to "+strings.TrimPrefix(receiver.URL, "http://")+": ")
			}
			if text != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			var later *messenger.LaterError
			if errors.As(err, &later) != (tc.later != 0) || later != nil && later.After != max(tc.later, 0) {
				t.Errorf("later: %+v, want %s", later, tc.later)
			}
			if strings.Contains(text, canary) {
				t.Errorf("%q repeats what it should not", text)
			}
		})
	}
}

// hijack answers with bytes, and ends the connection.
func hijack(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// TestAddresses: messages go where sources may be, and nothing is sent elsewhere.
func TestAddresses(t *testing.T) {
	asked := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer receiver.Close()
	own := loopback()
	own.Own = []string{strings.TrimPrefix(receiver.URL, "http://")}
	for name, tc := range map[string]struct {
		out     egress.Dialer
		address string
		to      messenger.Target
	}{
		"loopback":                  {egress.Dialer{}, receiver.URL, messenger.Target{}},
		"the control plane itself":  {own, receiver.URL, messenger.Target{}},
		"link-local":                {loopback(), "http://169.254.169.254/latest/meta-data", messenger.Target{}},
		"link-local, by a proxy":    {loopback(), "http://169.254.169.254/latest/meta-data", messenger.Target{Proxy: map[string][]byte{"address": []byte(receiver.URL)}}},
		"a proxy that is somewhere": {egress.Dialer{}, "http://93.184.215.14/", messenger.Target{Proxy: map[string][]byte{"address": []byte(receiver.URL)}}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := send(t.Context(), t, tc.out, tc.to, tc.address); !errors.Is(err, egress.ErrNotAllowed) {
				t.Errorf("got %v, want an address that is not allowed", err)
			}
		})
	}
	if asked != 0 {
		t.Errorf("%d requests were sent", asked)
	}
}

func TestTheWay(t *testing.T) {
	byProxy := ""
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { byProxy = r.URL.String() }))
	defer proxy.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	tarpit := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }))
	defer tarpit.Close()
	for name, tc := range map[string]struct {
		to      messenger.Target
		address string
		want    string
	}{
		"by a proxy":                     {messenger.Target{Proxy: map[string][]byte{"address": []byte(proxy.URL)}}, "http://127.0.0.2:9/hook", ""},
		"a proxy that is none":           {messenger.Target{Proxy: map[string][]byte{"address": []byte("ftp://" + canary)}}, secure.URL, "unusable provider: proxy: key address: it is no proxy: write http://host:port, https://host:port or socks5://host:port"},
		"with an authority of one's own": {messenger.Target{Certificates: map[string][]byte{"ca.crt": authority}}, secure.URL, ""},
		"without":                        {messenger.Target{}, secure.URL, "send to " + strings.TrimPrefix(secure.URL, "https://") + ": x509: certificate signed by unknown authority"},
		"an authority that is none":      {messenger.Target{Certificates: map[string][]byte{"ca.crt": []byte(canary)}}, secure.URL, "unusable provider: certSecretRef: unusable credentials: key ca.crt holds no PEM certificate"},
		"nobody ever answers":            {messenger.Target{Timeout: 50 * time.Millisecond}, tarpit.URL, "send to " + strings.TrimPrefix(tarpit.URL, "http://") + ": context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			err := send(t.Context(), t, loopback(), tc.to, tc.address)
			if text := errorText(err); text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
	if byProxy != "http://127.0.0.2:9/hook" {
		t.Errorf("the proxy was asked for %q", byProxy)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
