package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

func TestThreshold(t *testing.T) {
	const s = time.Second
	type answer struct {
		at time.Duration
		is outcome
	}
	flap := func() (out []answer) {
		for i := range 30 { // ten seconds up, ten seconds down
			out = append(out, answer{time.Duration(2*i) * 10 * s, well}, answer{time.Duration(2*i+1) * 10 * s, unreachable})
		}
		return out
	}
	cases := map[string]struct {
		wasReady bool
		answers  []answer
		want     []outcome     // at each turn of what is shown
		began    time.Duration // of the last; zero is not looked at
	}{
		"a new member is what it is first seen as": {
			answers: []answer{{0, unreachable}}, want: []outcome{unreachable},
		},
		"one that was ready before a restart stays so until one can be sure": {
			wasReady: true, answers: []answer{{0, unreachable}, {4 * s, unreachable}, {5 * s, unreachable}}, want: []outcome{well, unreachable},
		},
		"and is ready again as soon as it is seen to be": {
			wasReady: true, answers: []answer{{9 * s, unreachable}, {10 * s, well}}, want: []outcome{unreachable, well},
		},
		"once it was seen it has to fail for long enough": {
			wasReady: true, answers: []answer{{0, well}, {1 * s, unreachable}, {30 * s, unreachable}, {31 * s, unreachable}}, want: []outcome{well, unreachable}, began: s,
		},
		"one good answer starts the count over": {
			wasReady: true, answers: []answer{{0, unreachable}, {20 * s, well}, {25 * s, unreachable}, {45 * s, unreachable}}, want: []outcome{well},
		},
		"it is ready again after it was well for long enough": {
			answers: []answer{{0, unreachable}, {10 * s, well}, {39 * s, well}, {40 * s, well}}, want: []outcome{unreachable, back("00:00:10"), well}, began: 10 * s,
		},
		"another kind of failure shows once it has stood for a while": {
			answers: []answer{{0, unreachable}, {1 * s, unwell}, {5 * s, unwell}, {6 * s, unwell}}, want: []outcome{unreachable, unwell},
		},
		"one that fails in more ways than one is told of once": {
			answers: []answer{{0, unreachable}, {1 * s, unwell}, {4 * s, unreachable}, {8 * s, unwell}, {12 * s, unwell}, {13 * s, absent(syscall.ECONNREFUSED)}, {14 * s, unwell}}, want: []outcome{unreachable},
		},
		"one that fails again is not back": {
			answers: []answer{{0, unreachable}, {10 * s, well}, {20 * s, unreachable}, {30 * s, well}, {40 * s, unreachable}}, want: []outcome{unreachable, back("00:00:10"), unreachable},
		},
		"the same, and then it stays": {
			answers: []answer{{0, unreachable}, {10 * s, well}, {20 * s, unreachable}, {30 * s, well}, {44 * s, well}, {45 * s, well}, {60 * s, well}},
			want:    []outcome{unreachable, back("00:00:10"), unreachable, back("00:00:30"), well},
		},
		"once it was ready again nothing is held against it": {
			answers: []answer{{0, unreachable}, {10 * s, well}, {20 * s, unreachable}, {30 * s, well}, {60 * s, well}, {70 * s, unreachable}, {100 * s, unreachable}, {110 * s, well}},
			want:    []outcome{unreachable, back("00:00:10"), unreachable, well, unreachable, back("00:01:50")},
		},
		"one that starts refuses the credentials for a moment": {
			answers: []answer{{0, unreachable}, {10 * s, forbidden}, {12 * s, well}, {42 * s, well}}, want: []outcome{unreachable, back("00:00:12"), well},
		},
		"one that refuses them for longer means it": {
			answers: []answer{{0, unreachable}, {10 * s, forbidden}, {14 * s, forbidden}, {15 * s, forbidden}, {20 * s, expired}, {25 * s, expired}, {26 * s, well}}, want: []outcome{unreachable, forbidden, expired, back("00:00:26")},
		},
		"one that has refused them all along does": {
			wasReady: true, answers: []answer{{0, well}, {10 * s, forbidden}, {40 * s, forbidden}}, want: []outcome{well, forbidden},
		},
		"a new member that refuses them does": {
			answers: []answer{{0, forbidden}}, want: []outcome{forbidden},
		},
		"one that flaps for ten minutes turns once at most": {
			answers: flap(), want: []outcome{well},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			th := newThreshold(30*s, 30*s, tc.wasReady, time.Unix(0, 0))
			var got []outcome
			for _, a := range tc.answers {
				if is := th.turn(time.Unix(0, 0).UTC().Add(a.at), time.Unix(0, 0).UTC().Add(a.at), a.is); len(got) == 0 || got[len(got)-1] != is {
					got = append(got, is)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if began := th.began.Sub(time.Unix(0, 0)); began != tc.began && tc.began != 0 {
				t.Errorf("so since %s, want %s", began, tc.began)
			}
		})
	}
}

// back is what is shown of a member that is well again since a time.
func back(since string) outcome {
	return outcome{false, "AnswersAgain", "cluster answers again since 1970-01-01 " + since + " UTC, and counts as ready once it has done so for 30s"}
}

func TestProbe(t *testing.T) {
	answering := func(codes map[string]int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if code, ok := codes[r.URL.Path]; ok {
				w.WriteHeader(code)
				return
			}
			w.WriteHeader(http.StatusNotFound)
		}
	}
	cases := map[string]struct {
		answer http.HandlerFunc // nil: nobody listens
		want   outcome
	}{
		"ready":                              {answering(map[string]int{"/readyz": 200}), well},
		"not ready":                          {answering(map[string]int{"/readyz": 500, "/healthz": 200}), unwell},
		"an old server that is healthy":      {answering(map[string]int{"/healthz": 200}), well},
		"an old server that is not":          {answering(map[string]int{"/healthz": 503}), unwell},
		"one that refuses the credentials":   {answering(map[string]int{"/readyz": 401}), expired},
		"one that forbids to ask":            {answering(map[string]int{"/readyz": 403}), forbidden},
		"one that serves neither":            {answering(nil), unwell},
		"nobody there":                       {nil, absent(syscall.ECONNREFUSED)},
		"somebody who closes the connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unreachable},
		"somebody who answers with a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, absent(members.ErrRedirect)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.answer)
			defer server.Close()
			if tc.answer == nil {
				server.Close()
			}
			member, err := members.New(members.Options{}).Connect(members.Target{Config: &rest.Config{Host: server.URL}})
			if err != nil {
				t.Fatal(err)
			}
			if got := probe(t.Context(), member.Clients().Discovery().RESTClient()); got != tc.want {
				t.Errorf("probe = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestWhatKeepsAMemberAwayIsNamed, in words that do not change from look to look.
func TestWhatKeepsAMemberAwayIsNamed(t *testing.T) {
	for want, err := range map[string]error{
		"cluster is not reachable: connection refused":         &url.Error{Op: "Get", URL: "https://127.0.0.1:34903/readyz", Err: syscall.ECONNREFUSED},
		"cluster is not reachable: it does not answer in time": &url.Error{Op: "Get", URL: "https://127.0.0.1:34903/readyz", Err: context.DeadlineExceeded},
		"cluster is not reachable":                             errors.New("read tcp 127.0.0.1:1->127.0.0.1:2: reset"),
	} {
		if got := absent(err); got.message != want || got.reason != clusterv1alpha1.ClusterNotReachableReason {
			t.Errorf("absent(%v) = %v, want %q", err, got, want)
		}
	}
}

func TestWhyAMemberCannotBeReachedIsReported(t *testing.T) {
	const day = 24 * time.Hour
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	over, overCA := lasting(t, -2*day, -day)
	early, earlyCA := lasting(t, day, 2*day)
	cases := map[string]struct {
		config rest.Config
		want   string
	}{
		"a certificate that has expired": {rest.Config{Host: over, TLSClientConfig: rest.TLSClientConfig{CAData: overCA}},
			"its certificate has expired, or is not valid yet: look at the clocks of both sides, or renew it"},
		"a certificate that is not valid yet": {rest.Config{Host: early, TLSClientConfig: rest.TLSClientConfig{CAData: earlyCA}},
			"its certificate has expired, or is not valid yet: look at the clocks of both sides, or renew it"},
		"a certificate of somebody else": {rest.Config{Host: server.URL}, "certificate is not trusted"},
		"a proxy that is not there": {rest.Config{Host: server.URL, Proxy: func(*http.Request) (*url.URL, error) {
			return &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, nil
		}}, "the proxy of spec.proxyURL does not answer"},
		"a SOCKS proxy that is not there": {rest.Config{Host: server.URL, Proxy: func(*http.Request) (*url.URL, error) {
			return &url.URL{Scheme: "socks5", Host: "127.0.0.1:1"}, nil
		}}, "the proxy of spec.proxyURL does not answer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			member, err := members.New(members.Options{}).Connect(members.Target{Config: &tc.config})
			if err != nil {
				t.Fatal(err)
			}
			got := probe(t.Context(), member.Clients().Discovery().RESTClient())
			if got.reason != "ClusterNotReachable" || !strings.Contains(got.message, tc.want) {
				t.Errorf("probe = %v, want one about %q", got, tc.want)
			}
		})
	}
}

// lasting runs a server whose certificate is good between two times from now, and
// returns its address and what to trust.
func lasting(t *testing.T, from, until time.Duration) (host string, authority []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
