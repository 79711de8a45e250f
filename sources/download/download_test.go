package download_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/download"
)

// canary is what must never show.
const canary = "CANARY-3b7d"

var reach = egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func TestGet(t *testing.T) {
	for name, tc := range map[string]struct {
		url    string // in place of the server's
		code   int
		limit  int64
		egress *egress.Dialer
		want   error
		says   string
	}{
		"a file":                         {},
		"no such file":                   {code: http.StatusNotFound, want: download.ErrNotFound},
		"a file that nobody may read":    {code: http.StatusForbidden, want: download.ErrRefused, says: "HTTP 403"},
		"a redirect":                     {code: http.StatusFound, want: egress.ErrRedirect, says: "has to be that of the file"},
		"a server that is down":          {code: http.StatusBadGateway, says: "the server answered HTTP 502"},
		"a file that is too large":       {limit: 3, want: download.ErrTooLarge, says: "more than 3 bytes"},
		"an address that is not allowed": {egress: &egress.Dialer{}, want: egress.ErrNotAllowed},
		"another scheme":                 {url: "file:///etc/passwd", want: download.ErrURL},
		"no host":                        {url: "http:///x", want: download.ErrURL},
		"a user":                         {url: "http://me:" + canary + "@git.test/x", want: download.ErrURL},
		"no URL":                         {url: "http://%zz" + canary, want: download.ErrURL},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://"+canary)
				if tc.code != 0 {
					w.WriteHeader(tc.code)
				}
				_, _ = w.Write([]byte("file " + canary))
			}))
			t.Cleanup(server.Close)
			opts := download.Options{Egress: reach, Limit: tc.limit}
			if tc.egress != nil {
				opts.Egress = *tc.egress
			}
			address := server.URL + "/x"
			if tc.url != "" {
				address = tc.url
			}
			got, err := download.New(opts).Get(t.Context(), address)
			if fine := tc.want == nil && tc.says == ""; fine != (err == nil) || fine && string(got) != "file "+canary {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && (tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), canary)) {
				t.Errorf("error = %v, want %v saying %q", err, tc.want, tc.says)
			}
		})
	}
}
