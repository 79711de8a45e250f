package s3_test

import (
	"errors"
	"fmt"
	"io"
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
	"github.com/flotilla-io/flotilla/internal/s3server"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// canary is the secret that must never show.
const canary = "CANARY-51aa"

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// fixture is a bucket of a server.
type fixture struct {
	*s3server.Server
	t     *testing.T
	host  string
	clock *clocktesting.FakePassiveClock
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Server: s3server.New("fleet", "reader"), t: t, clock: clocktesting.NewFakePassiveClock(start)}
	server := httptest.NewServer(f.Server)
	t.Cleanup(server.Close)
	f.host = server.Listener.Addr().String()
	return f
}

func (f *fixture) options() s3.Options {
	return s3.Options{Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Clock: f.clock}
}

func (f *fixture) remote(edit func(*s3.Place, *s3.Access, *s3.Options)) *s3.Remote {
	f.t.Helper()
	place, access, opts := s3.Place{Endpoint: f.host, Bucket: "fleet", Insecure: true}, s3.Access{Keys: s3.Keys{ID: "reader", Secret: canary}}, f.options()
	if edit != nil {
		edit(&place, &access, &opts)
	}
	remote, err := s3.NewRemote(place, access, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(remote.Close)
	return remote
}

func keysOf(all []s3.Object) (out []string) {
	for _, o := range all {
		out = append(out, o.Key)
	}
	return out
}

func TestListAndGet(t *testing.T) {
	f := newFixture(t)
	f.Page = 2
	f.Put(map[string]string{"app/web.yaml": "one", "app/a b+c&<ä>.yaml": "two", "app/x": "", "base/y": "three", "z": "four"})
	remote := f.remote(nil)
	all, err := remote.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"app/a b+c&<ä>.yaml", "app/web.yaml", "app/x", "base/y", "z"}
	if diff := cmp.Diff(want, keysOf(all)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if asked := f.Requests(); len(asked) != 3 {
		t.Errorf("asked %v, want three pages", asked)
	}
	for i, want := range []string{"two", "one", ""} {
		got, err := remote.Get(t.Context(), all[i])
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", all[i].Key, got, err, want)
		}
	}
	below, err := remote.List(t.Context(), "app/")
	if err != nil || len(below) != 3 {
		t.Errorf("below app/ are %v, %v", keysOf(below), err)
	}
}

// TestRevision: it is the SHA-256 of lines of a key and its version, in the order of keys.
func TestRevision(t *testing.T) {
	a, b := s3.Object{Key: "a", ETag: "1"}, s3.Object{Key: "b", Size: 3, Modified: "2026-08-01T12:00:00Z"}
	// printf 'a 1\nb 3@2026-08-01T12:00:00Z\n' | sha256sum
	const want = "sha256:4dcbafc0dfa47671e7194aeffe9adf6e489a1595ba5213c4bce8355ab8086a5f"
	for _, objects := range [][]s3.Object{{a, b}, {b, a}} {
		if got := s3.Revision(objects); got != want {
			t.Errorf("revision = %s, want %s", got, want)
		}
	}
}

func TestAnObjectThatChangesMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.Put(map[string]string{"a": "one", "b": "two"})
	remote := f.remote(nil)
	all, err := remote.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Put(map[string]string{"a": "longer than before"})
	for _, o := range all {
		if _, err := remote.Get(t.Context(), o); !errors.Is(err, s3.ErrChanged) {
			t.Errorf("%s: %v", o.Key, err)
		}
		o.ETag = "" // the server does not name versions
		if _, err := remote.Get(t.Context(), o); !errors.Is(err, s3.ErrChanged) {
			t.Errorf("%s without a version: %v", o.Key, err)
		}
	}
}

func TestFind(t *testing.T) {
	f := newFixture(t)
	f.Put(map[string]string{".sourceignore": "*.md"})
	remote := f.remote(nil)
	content, etag, err := remote.Find(t.Context(), ".sourceignore", "", 10)
	if err != nil || string(content) != "*.md" {
		t.Fatalf("found %q, %v", content, err)
	}
	if _, _, err := remote.Find(t.Context(), ".sourceignore", etag, 10); !errors.Is(err, s3.ErrSame) {
		t.Errorf("the second time: %v", err)
	}
	if _, _, err := remote.Find(t.Context(), ".sourceignore", "", 3); !errors.Is(err, s3.ErrTooLarge) {
		t.Errorf("a larger one: %v", err)
	}
	if _, _, err := remote.Find(t.Context(), "none", "", 3); !errors.Is(err, s3.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
}

// page answers every request with this.
func page(text string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, text)
		return true
	}
}

// refuses answers every request with a code.
func refuses(status int, code string, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		s3server.Refuse(w, status, code)
		return true
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	const open, shut = "<ListBucketResult>", "</ListBucketResult>"
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		edit   func(*s3.Place, *s3.Access, *s3.Options)
		want   error
		says   string
	}{
		"no XML":                       {answer: page("<html>" + canary), want: s3.ErrMalformed, says: "is it a server of S3?"},
		"another document":             {answer: page("<Error/>"), want: s3.ErrMalformed},
		"a list that ends":             {answer: page(open + "<IsTruncated>true</IsTruncated>" + shut), want: s3.ErrMalformed, says: "ends in the middle"},
		"a list without an end":        {answer: page(open + "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken><Contents><Key>a</Key></Contents>" + shut), want: s3.ErrMalformed, says: "has no end"},
		"pages without objects":        {answer: page(open + "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>" + shut), want: s3.ErrMalformed, says: "has no end"},
		"one object twice":             {answer: page(open + "<Contents><Key>a</Key></Contents><Contents><Key>a</Key></Contents>" + shut), want: s3.ErrMalformed},
		"no key":                       {answer: page(open + "<Contents><Size>1</Size></Contents>" + shut), want: s3.ErrMalformed},
		"a size below zero":            {answer: page(open + "<Contents><Key>a</Key><Size>-1</Size></Contents>" + shut), want: s3.ErrMalformed},
		"a key with a bad escape":      {answer: page(open + "<EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents>" + shut), want: s3.ErrMalformed},
		"more objects than allowed":    {answer: page(open + "<Contents><Key>a</Key></Contents><Contents><Key>b</Key></Contents>" + shut), edit: func(_ *s3.Place, _ *s3.Access, o *s3.Options) { o.Limits.Objects = 1 }, want: s3.ErrTooLarge, says: "spec.prefix"},
		"a page that is too large":     {answer: page(open + strings.Repeat(" ", 100) + shut), edit: func(_ *s3.Place, _ *s3.Access, o *s3.Options) { o.Limits.Page = 100 }, want: s3.ErrTooLarge},
		"no such bucket":               {edit: func(p *s3.Place, _ *s3.Access, _ *s3.Options) { p.Bucket = "other" }, want: s3.ErrNotFound, says: "check spec.bucketName"},
		"another key":                  {edit: func(_ *s3.Place, a *s3.Access, _ *s3.Options) { a.Keys.ID = "other" }, want: s3.ErrUnauthorized, says: "s3:ListBucket"},
		"no key at all":                {edit: func(_ *s3.Place, a *s3.Access, _ *s3.Options) { a.Keys = s3.Keys{} }, want: s3.ErrUnauthorized, says: "name a Secret with accesskey and secretkey"},
		"a key that nobody knows":      {answer: refuses(403, "InvalidAccessKeyId"), want: s3.ErrUnauthorized, says: "correct accesskey"},
		"the same, as another server":  {answer: refuses(404, "InvalidAccessKeyId"), want: s3.ErrUnauthorized, says: "correct accesskey"},
		"a secret of another key":      {answer: refuses(403, "SignatureDoesNotMatch"), want: s3.ErrUnauthorized, says: "correct secretkey"},
		"another time":                 {answer: refuses(403, "RequestTimeTooSkewed"), want: s3.ErrUnauthorized, says: "clocks"},
		"another region than it named": {answer: refuses(400, "AuthorizationHeaderMalformed"), edit: func(p *s3.Place, _ *s3.Access, _ *s3.Options) { p.Region = "eu" }, want: s3.ErrUnauthorized, says: "correct spec.region"},
		"a redirect":                   {answer: refuses(301, "PermanentRedirect", "Location", "http://"+canary), want: s3.ErrRedirect, says: "name the endpoint of its region"},
		"a server that is down":        {answer: refuses(500, "InternalError"), says: "the server answered HTTP 500"},
		"a server that does not list":  {answer: refuses(501, "NotImplemented"), want: s3.ErrMalformed, says: "HTTP 501"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.Put(map[string]string{"a": "one"})
			f.Answer(tc.answer)
			_, err := f.remote(tc.edit).List(t.Context(), "")
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error = %v, want %v saying %q", err, tc.want, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), "CANARY") {
				t.Errorf("the answer shows in: %v", err)
			}
		})
	}
}

func TestABusyServerIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	f.Put(map[string]string{"a": "one"})
	f.Answer(refuses(503, "SlowDown", "Retry-After", "120"))
	remote := f.remote(nil)
	for range 2 {
		_, err := remote.List(t.Context(), "")
		var busy *s3.BusyError
		if !errors.As(err, &busy) || busy.After != 2*time.Minute {
			t.Fatalf("error = %v", err)
		}
	}
	if asked := f.Requests(); len(asked) != 1 {
		t.Errorf("asked %v, want once", asked)
	}
	f.Answer(nil)
	f.clock.SetTime(start.Add(2 * time.Minute))
	if _, err := remote.List(t.Context(), ""); err != nil {
		t.Error(err)
	}
}

// TestTheRegionThatAServerNames: it is taken where nobody has named one, and kept.
func TestTheRegionThatAServerNames(t *testing.T) {
	f := newFixture(t)
	f.Put(map[string]string{"a": "one"})
	f.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.Header.Get("Authorization"), "/garage/s3/") {
			return false
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>garage</Region></Error>")
		return true
	})
	remote := f.remote(nil)
	for _, requests := range []int{2, 1} {
		if _, err := remote.List(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if asked := f.Requests(); len(asked) != requests {
			t.Errorf("asked %v, want %d requests", asked, requests)
		}
	}
}

func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		place s3.Place
		says  string
	}{
		"a host":                     {place: s3.Place{Endpoint: "s3.example.com", Bucket: "fleet"}},
		"a host with a port":         {place: s3.Place{Endpoint: "s3.example.com:9000", Bucket: "fleet.prod"}},
		"a host with a slash":        {place: s3.Place{Endpoint: "s3.example.com/", Bucket: "fleet"}},
		"an address of IPv6":         {place: s3.Place{Endpoint: "[2001:db8::1]:9000", Bucket: "fleet", Region: "eu-west-1"}},
		"an address of IPv6 alone":   {place: s3.Place{Endpoint: "[2001:db8::1]", Bucket: "fleet"}},
		"a URL":                      {place: s3.Place{Endpoint: "https://s3.example.com", Bucket: "fleet"}, says: "without a scheme"},
		"a path":                     {place: s3.Place{Endpoint: "s3.example.com/minio", Bucket: "fleet"}, says: "spec.endpoint"},
		"a user":                     {place: s3.Place{Endpoint: "me@s3.example.com", Bucket: "fleet"}, says: "spec.endpoint"},
		"a query":                    {place: s3.Place{Endpoint: "s3.example.com?x", Bucket: "fleet"}, says: "spec.endpoint"},
		"nothing":                    {place: s3.Place{Bucket: "fleet"}, says: "spec.endpoint"},
		"a port that is none":        {place: s3.Place{Endpoint: "s3.example.com:0", Bucket: "fleet"}, says: "spec.endpoint"},
		"a bucket with a slash":      {place: s3.Place{Endpoint: "h", Bucket: "fleet/app"}, says: "spec.bucketName"},
		"a bucket that leads upward": {place: s3.Place{Endpoint: "h", Bucket: "a..b"}, says: "spec.bucketName"},
		"a region with a slash":      {place: s3.Place{Endpoint: "h", Bucket: "fleet", Region: "a/b"}, says: "spec.region"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s3.NewRemote(tc.place, s3.Access{}, s3.Options{})
			if (err == nil) != (tc.says == "") || err != nil && (!errors.Is(err, s3.ErrPlace) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want one saying %q", err, tc.says)
			}
		})
	}
}

func TestAddressesThatAreNotAllowed(t *testing.T) {
	f := newFixture(t)
	remote := f.remote(func(_ *s3.Place, _ *s3.Access, o *s3.Options) { o.Egress = egress.Dialer{} })
	if _, err := remote.List(t.Context(), ""); !errors.Is(err, egress.ErrNotAllowed) {
		t.Errorf("error = %v", err)
	}
	if asked := f.Requests(); len(asked) != 0 {
		t.Errorf("asked %v", asked)
	}
}

// lends answers as a service that gives out keys, and notes what it is asked for.
type lends struct {
	forms []url.Values
	ends  time.Time
	code  int
}

func (l *lends) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	l.forms = append(l.forms, r.PostForm)
	if l.code != 0 {
		w.WriteHeader(l.code)
		_, _ = io.WriteString(w, "CANARY")
		return
	}
	_, _ = fmt.Fprintf(w, "<AssumeRoleWithLDAPIdentityResponse><AssumeRoleWithLDAPIdentityResult><Credentials><AccessKeyId>reader</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"+
		"<SessionToken>lent</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>", l.ends.Format(time.RFC3339))
}

// TestKeysOfADirectory: they are asked for once until they are about to end, and come with their token.
func TestKeysOfADirectory(t *testing.T) {
	f, service := newFixture(t), &lends{ends: start.Add(time.Hour)}
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	f.Put(map[string]string{"a": "one"})
	var tokens []string
	f.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		tokens = append(tokens, r.Header.Get("X-Amz-Security-Token"))
		return false
	})
	remote := f.remote(func(_ *s3.Place, a *s3.Access, _ *s3.Options) {
		a.Keys, a.Directory = s3.Keys{}, &s3.Directory{Endpoint: server.URL, Username: "me", Password: canary}
	})
	for _, at := range []time.Duration{0, 30 * time.Minute, 59*time.Minute + 30*time.Second} {
		f.clock.SetTime(start.Add(at))
		if _, err := remote.List(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	form := url.Values{"Action": {"AssumeRoleWithLDAPIdentity"}, "Version": {"2011-06-15"}, "LDAPUsername": {"me"}, "LDAPPassword": {canary}}
	if diff := cmp.Diff([]url.Values{form, form}, service.forms); diff != "" {
		t.Errorf("the service was asked (-want +got):\n%s", diff)
	}
	if !slices.Equal(tokens, []string{"lent", "lent", "lent"}) {
		t.Errorf("tokens are %q", tokens)
	}
	service.code = http.StatusForbidden
	f.clock.SetTime(start.Add(2 * time.Hour))
	_, err := remote.List(t.Context(), "")
	if !errors.Is(err, s3.ErrUnauthorized) || !strings.Contains(err.Error(), "spec.sts.secretRef") || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("error = %v", err)
	}
}

func TestSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		data map[string]string
		says string
	}{
		"both keys, and line ends":   {data: map[string]string{"accesskey": "reader\n", "secretkey": canary + "\n"}},
		"no secret key":              {data: map[string]string{"accesskey": canary}, says: "accesskey and secretkey"},
		"an access key of two words": {data: map[string]string{"accesskey": canary + " x", "secretkey": "y"}, says: "accesskey is no access key"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range tc.data {
				data[key] = []byte(value)
			}
			keys, err := s3.ParseKeys(data)
			if (err == nil) != (tc.says == "") || err != nil && (!errors.Is(err, s3.ErrCredentials) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("error = %v, want one saying %q", err, tc.says)
			}
			if text := fmt.Sprintf("%v %+v %#v %v", keys, keys, keys, err); strings.Contains(text, canary) {
				t.Errorf("a value shows in %s", text)
			}
		})
	}
}
