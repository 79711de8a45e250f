package push_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/oci"
	"github.com/flotilla-io/flotilla/sources/oci/push"
)

// canary is the secret that must never show.
const canary = "CANARY-81aa"

func must[T any](t testing.TB) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// fixture is a registry, and the way to one repository of it.
type fixture struct {
	*ociserver.Server
	remote *oci.Remote
	to     push.Repository
}

func newFixture(t *testing.T, server *ociserver.Server, login oci.Login, opts push.Options) fixture {
	t.Helper()
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	remote := must[*oci.Remote](t)(oci.NewRemote("oci://"+listening.Listener.Addr().String()+"/app", oci.Access{Login: login, Insecure: true, Writes: true}, oci.Options{
		Egress: egress.Dialer{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Clock: opts.Clock,
	}))
	t.Cleanup(remote.Close)
	return fixture{server, remote, push.To(remote, opts)}
}

// asked are the requests since the last call, with digests as far as they are told apart.
func (f fixture) asked(known map[string]string) []string {
	var pairs []string
	for digest, name := range known {
		pairs = append(pairs, digest, name)
	}
	replace := strings.NewReplacer(pairs...)
	var out []string
	for _, request := range f.Requests() {
		before, _, upload := strings.Cut(request, "/blobs/uploads/")
		if upload {
			request = before + "/blobs/uploads/…"
		}
		out = append(out, replace.Replace(request))
	}
	return out
}

func web(t *testing.T, files map[string]string) push.Artifact {
	t.Helper()
	return push.Artifact{
		Layer: must[[]byte](t)(ociserver.Pack(files)), Source: "https://git.test/fleet", Revision: "main@sha1:1", Created: time.Unix(0, 0),
		Annotations: map[string]string{"org.test/of": "a=b"},
	}
}

// TestPush: what is pushed is read as an OCIRepository reads it, and what is there already is not sent again.
func TestPush(t *testing.T) {
	f := newFixture(t, ociserver.New(), oci.Login{}, push.Options{})
	files := map[string]string{"web.yaml": "kind: A"}
	one := web(t, files)
	first := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", one))
	manifest := must[oci.Manifest](t)(f.remote.Manifest(t.Context(), first.Digest))
	want := map[string]string{"org.opencontainers.image.created": "1970-01-01T00:00:00Z", "org.opencontainers.image.source": "https://git.test/fleet", "org.opencontainers.image.revision": "main@sha1:1", "org.test/of": "a=b"}
	if diff := cmp.Diff(want, manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	layer := must[oci.Descriptor](t)(manifest.Layer("application/vnd.cncf.flux.content.v1.tar+gzip"))
	if got := must[[]byte](t)(f.remote.Layer(t.Context(), layer)); string(got) != string(one.Layer) {
		t.Error("the layer is another")
	}
	_, raw, err := oci.Raw(t.Context(), f.remote, first.Digest)
	if err != nil {
		t.Fatal(err)
	}
	var says struct{ Config oci.Descriptor }
	if err := json.Unmarshal(raw, &says); err != nil || says.Config.MediaType != "application/vnd.cncf.flux.config.v1+json" {
		t.Errorf("configuration %+v, error %v", says.Config, err)
	}
	known := map[string]string{first.Digest: "MANIFEST", layer.Digest: "LAYER", says.Config.Digest: "CONFIG"}
	if want := (push.Pushed{Digest: first.Digest, Sent: layer.Size + says.Config.Size}); first != want {
		t.Errorf("the first: %+v, want %+v", first, want)
	}
	steps := []struct {
		name  string
		tag   string
		files map[string]string
		want  []string
		same  bool // the digest
		sent  int64
	}{
		{"the same again", "v1", files, []string{"HEAD /v2/app/manifests/v1"}, true, 0},
		{"the same under another tag", "v2", files, []string{"HEAD /v2/app/manifests/v2", "GET /v2/app/manifests/v2", "HEAD /v2/app/blobs/LAYER", "HEAD /v2/app/blobs/CONFIG", "PUT /v2/app/manifests/v2"}, true, 0},
	}
	f.asked(known)
	for _, step := range steps {
		got := must[push.Pushed](t)(f.to.Push(t.Context(), step.tag, web(t, step.files)))
		if (got.Digest == first.Digest) != step.same || got.Sent != step.sent || got.Unchanged != (len(step.want) == 1) {
			t.Errorf("%s: %+v", step.name, got)
		}
		if diff := cmp.Diff(step.want, f.asked(known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	other := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", web(t, map[string]string{"web.yaml": "kind: B"})))
	if target := must[oci.Target](t)(f.remote.Resolve(t.Context(), oci.Ref{Tag: "v1"})); other.Digest == first.Digest || target.Digest != other.Digest {
		t.Errorf("another content: %+v, the tag leads to %s", other, target.Digest)
	}
}

// TestTag: a tag leads elsewhere without anything else being sent.
func TestTag(t *testing.T) {
	f := newFixture(t, ociserver.New(), oci.Login{}, push.Options{})
	first := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"})))
	known := map[string]string{first.Digest: "MANIFEST"}
	f.asked(known)
	for _, test := range []struct {
		name, tag string
		unchanged bool
		want      []string
	}{
		{"a new one", "prod", false, []string{"HEAD /v2/app/manifests/prod", "GET /v2/app/manifests/prod", "GET /v2/app/manifests/MANIFEST", "PUT /v2/app/manifests/prod"}},
		{"one it has", "v1", true, []string{"HEAD /v2/app/manifests/v1"}},
		{"one elsewhere", "v0", false, []string{"HEAD /v2/app/manifests/v0", "GET /v2/app/manifests/MANIFEST", "PUT /v2/app/manifests/v0"}},
	} {
		if test.tag == "v0" {
			must[push.Pushed](t)(f.to.Push(t.Context(), "v0", web(t, map[string]string{"b": "B"})))
			f.asked(known)
		}
		unchanged, err := f.to.Tag(t.Context(), first.Digest, test.tag)
		if err != nil || unchanged != test.unchanged {
			t.Errorf("%s: unchanged %t, error %v", test.name, unchanged, err)
		}
		if diff := cmp.Diff(test.want, f.asked(known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	if _, err := f.to.Tag(t.Context(), "sha256:"+strings.Repeat("0", 64), "none"); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("of what there is not: %v", err)
	}
}

// TestAttach: what refers to an artifact is found by the registry's list, or by the tag that stands for one, beside what is there.
func TestAttach(t *testing.T) {
	const bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	for name, server := range map[string]*ociserver.Server{"the registry keeps a list": ociserver.NewWithReferrers(), "it keeps none": ociserver.New()} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server, oci.Login{}, push.Options{})
			done := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"})))
			for _, content := range []string{"one", "two"} {
				if err := f.to.Attach(t.Context(), done.Digest, push.Attachment{MediaType: bundle, Content: []byte(content)}, time.Unix(0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, of := range must[[]oci.Signature](t)(f.remote.Signatures(done.Digest).Bundles(t.Context())) {
				got = append(got, string(of.Content))
			}
			if len(got) == 2 && got[0] == "two" { // a registry's list has no order
				got[0], got[1] = got[1], got[0]
			}
			if diff := cmp.Diff([]string{"one", "two"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			stands := ""
			for _, tag := range must[[]string](t)(f.remote.Tags(t.Context())) {
				if strings.HasPrefix(tag, "sha256-") {
					stands = tag
				}
			}
			if want := map[bool]string{true: strings.Replace(done.Digest, ":", "-", 1)}[name == "it keeps none"]; stands != want {
				t.Errorf("the tag for a list is %q, want %q", stands, want)
			}
		})
	}
}

// TestAppend: a simple signature stands beside those that are there.
func TestAppend(t *testing.T) {
	const simple = "application/vnd.dev.cosign.simplesigning.v1+json"
	f := newFixture(t, ociserver.New(), oci.Login{}, push.Options{})
	done := must[push.Pushed](t)(f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"})))
	if err := f.PushTexts(t.Context(), "app", done.Digest, ociserver.Text{Content: []byte("theirs"), Annotations: map[string]string{"sig": "1"}}); err != nil {
		t.Fatal(err)
	}
	if err := f.to.Append(t.Context(), done.Digest, push.Attachment{MediaType: simple, Content: []byte("ours"), Annotations: map[string]string{"sig": "2"}}); err != nil {
		t.Fatal(err)
	}
	want := []oci.Signature{{Content: []byte("theirs"), Annotations: map[string]string{"sig": "1"}}, {Content: []byte("ours"), Annotations: map[string]string{"sig": "2"}}}
	if diff := cmp.Diff(want, must[[]oci.Signature](t)(f.remote.Signatures(done.Digest).Simple(t.Context()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLogins: a registry that wants a login gets it, and one that does not take it is told so without showing it.
func TestLogins(t *testing.T) {
	wants := func(server *ociserver.Server) {
		server.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if user, password, given := r.BasicAuth(); given && user == "ann" && password == canary {
				return false
			}
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
	}
	for name, test := range map[string]struct {
		login oci.Login
		is    error
	}{
		"the right one": {login: oci.Login{Username: "ann", Password: canary}},
		"a wrong one":   {login: oci.Login{Username: "bob", Password: canary}, is: oci.ErrUnauthorized},
		"none":          {is: oci.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			server := ociserver.New()
			wants(server)
			f := newFixture(t, server, test.login, push.Options{})
			_, err := f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"}))
			if !errors.Is(err, test.is) || err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// script answers in place of a registry, that a request begins with the text of, with the codes, one after the other; 0 is the registry's own answer.
type script struct {
	begins string
	codes  []int
	after  string
}

func (s *script) answer(w http.ResponseWriter, r *http.Request) bool {
	if len(s.codes) == 0 || !strings.HasPrefix(r.Method+" "+r.URL.Path, s.begins) {
		return false
	}
	code := s.codes[0]
	s.codes = s.codes[1:]
	if code == 0 {
		return false
	}
	if s.after != "" {
		w.Header().Set("Retry-After", s.after)
	}
	http.Error(w, canary, code)
	return true
}

// waiting is a clock on which waiting takes no time, and is counted.
type waiting struct {
	*clocktesting.FakeClock
	waited []time.Duration
}

func newWaiting() *waiting { return &waiting{FakeClock: clocktesting.NewFakeClock(time.Now())} }

// After implements clock.Clock.
func (w *waiting) After(d time.Duration) <-chan time.Time {
	w.waited = append(w.waited, d)
	w.Step(d)
	over := make(chan time.Time, 1)
	over <- w.Now()
	return over
}

// TestRegistriesThatFail: one that is busy is asked again when it wants to be, one that fails after some seconds, and neither for ever.
func TestRegistriesThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		script
		waited []time.Duration
		says   string
	}{
		"busy, and says how long": {script{"POST /v2/app/blobs/uploads", []int{429, 429}, "7"}, []time.Duration{7 * time.Second, 7 * time.Second}, ""},
		"busy, and does not say":  {script{"PUT /v2/app/manifests", []int{503}, ""}, []time.Duration{time.Second}, ""},
		"fails once":              {script{"PUT /v2/app/blobs/uploads", []int{500}, ""}, []time.Duration{time.Second}, ""},
		"fails again and again":   {script{"PUT /v2/app/manifests", []int{502, 502, 502, 502, 502, 502}, ""}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}, "push the manifest: the registry answered HTTP 502"},
		"does not take it":        {script{"PUT /v2/app/manifests", []int{400}, ""}, nil, "push the manifest: unexpected answer: HTTP 400"},
		"has no answer to HEAD":   {script{"HEAD /v2/app/blobs", []int{405, 405}, ""}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := ociserver.New()
			server.Answer(test.answer)
			waits := newWaiting()
			f := newFixture(t, server, oci.Login{}, push.Options{Clock: waits})
			_, err := f.to.Push(t.Context(), "v1", web(t, map[string]string{"a": "A"}))
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.says {
				t.Errorf("error %q, want %q", text, test.says)
			}
			if diff := cmp.Diff(test.waited, waits.waited); diff != "" {
				t.Errorf("waited (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoTimeLeft: nobody waits for a registry past the end of the time that there is.
func TestNoTimeLeft(t *testing.T) {
	server := ociserver.New()
	server.Answer((&script{"POST /v2/app/blobs/uploads", []int{429}, "3600"}).answer)
	waits := newWaiting()
	f := newFixture(t, server, oci.Login{}, push.Options{Clock: waits})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := f.to.Push(ctx, "v1", web(t, map[string]string{"a": "A"}))
	if want := "push the layer: the registry is busy (HTTP 429), and wants to be left alone for 1h0m0s"; err == nil || err.Error() != want || waits.waited != nil {
		t.Errorf("waited %v, error %v", waits.waited, err)
	}
}

// TestProgress is told how much of a layer is sent.
func TestProgress(t *testing.T) {
	var last [2]int64
	f := newFixture(t, ociserver.New(), oci.Login{}, push.Options{Progress: func(sent, all int64) {
		if all > last[1] || all == last[1] && sent > last[0] {
			last = [2]int64{sent, all}
		}
	}})
	artifact := web(t, map[string]string{"a": strings.Repeat("A", 1<<16)})
	must[push.Pushed](t)(f.to.Push(t.Context(), "v1", artifact))
	if size := int64(len(artifact.Layer)); last != [2]int64{size, size} {
		t.Errorf("told %v of %d", last, size)
	}
}
