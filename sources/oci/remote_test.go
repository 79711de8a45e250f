package oci_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// TestResolve checks what each reference stands for.
func TestResolve(t *testing.T) {
	f := newFixture(t)
	digests := map[string]string{}
	for _, tag := range []string{"latest", "main", "1.0.0", "v1.1.0", "1.2.0-rc.1", "2.0.0", "1.0.1-flavour", "nightly-3"} {
		digests[tag] = f.push(tag, pack(t, map[string]string{"app.yaml": tag}))
	}
	for name, tc := range map[string]struct {
		ref  oci.Ref
		tag  string
		want error
	}{
		"nothing is said":                      {oci.Ref{}, "latest", nil},
		"a tag":                                {oci.Ref{Tag: "main"}, "main", nil},
		"the highest version of a range":       {oci.Ref{SemVer: "1.x"}, "v1.1.0", nil},
		"a range with versions before one":     {oci.Ref{SemVer: ">=1.0.0-0 <2.0.0"}, "1.2.0-rc.1", nil},
		"a range and a filter":                 {oci.Ref{SemVer: ">=1.0.0-0", SemVerFilter: ".*-flavour$"}, "1.0.1-flavour", nil},
		"a range counts more than a tag":       {oci.Ref{SemVer: "2.x", Tag: "main"}, "2.0.0", nil},
		"a range that no tag is in":            {oci.Ref{SemVer: "3.x"}, "", oci.ErrNotFound},
		"a range that is none":                 {oci.Ref{SemVer: "latest and greatest"}, "", oci.ErrRef},
		"a filter that is none":                {oci.Ref{SemVer: "1.x", SemVerFilter: "("}, "", oci.ErrRef},
		"a tag that is not there":              {oci.Ref{Tag: "gone"}, "", oci.ErrNotFound},
		"a tag that is none":                   {oci.Ref{Tag: "../blobs"}, "", oci.ErrRef},
		"a digest that is none":                {oci.Ref{Digest: "sha256:abc"}, "", oci.ErrRef},
		"a digest of another kind":             {oci.Ref{Digest: "sha512:" + strings.Repeat("a", 128)}, "", oci.ErrRef},
		"a digest counts more than the others": {oci.Ref{Digest: digests["main"], SemVer: "1.x", Tag: "latest"}, "main", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := f.remote(oci.Login{}, oci.Options{}).Resolve(t.Context(), tc.ref)
			if !errors.Is(err, tc.want) {
				t.Fatalf("the error is %v, want %v", err, tc.want)
			}
			want := oci.Target{Tag: tc.tag, Digest: digests[tc.tag]}
			if tc.ref.Digest != "" {
				want.Tag = ""
			}
			if tc.want == nil && got != want {
				t.Errorf("it is %v, want %v", got, want)
			}
		})
	}
}

// TestRequests checks that nothing is asked for twice, and that all that follows a tag is asked for by digest.
func TestRequests(t *testing.T) {
	f := newFixture(t)
	digest := f.push("latest", pack(t, map[string]string{"app.yaml": "one"}))
	remote := f.remote(oci.Login{}, oci.Options{})
	target, err := remote.Resolve(t.Context(), oci.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	f.push("latest", pack(t, map[string]string{"app.yaml": "two"})) // the tag moves between two requests
	manifest, err := remote.Manifest(t.Context(), target.Digest)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := manifest.Layer("")
	if err != nil {
		t.Fatal(err)
	}
	content, err := remote.Layer(t.Context(), layer)
	if err != nil {
		t.Fatal(err)
	}
	if want := pack(t, map[string]string{"app.yaml": "one"}); string(content) != string(want) {
		t.Error("it is not the layer of the artifact that the tag stood for")
	}
	if diff := cmp.Diff(map[string]string{"org.opencontainers.image.revision": "main@sha1:1"}, manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	want := []string{"HEAD /v2/app/manifests/latest", "GET /v2/app/manifests/" + digest, "GET /v2/app/blobs/" + layer.Digest}
	if diff := cmp.Diff(want, f.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestRegistriesWithoutHead checks that a registry is asked with GET that does not answer HEAD, or without a digest.
func TestRegistriesWithoutHead(t *testing.T) {
	for name, head := range map[string]func(w http.ResponseWriter){
		"it refuses":            func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) },
		"it finds nothing":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"it says no digest":     func(http.ResponseWriter) {},
		"it says half a digest": func(w http.ResponseWriter) { w.Header().Set("Docker-Content-Digest", "sha256:abc") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			digest := f.push("latest", pack(t, nil))
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead {
					head(w)
				}
				return r.Method == http.MethodHead
			}
			got, err := f.remote(oci.Login{}, oci.Options{}).Resolve(t.Context(), oci.Ref{})
			if err != nil || got.Digest != digest {
				t.Errorf("Resolve = %v, %v, want %s", got, err, digest)
			}
		})
	}
}

// TestLayers checks which layer is read, through an index as well.
func TestLayers(t *testing.T) {
	f := newFixture(t)
	layer := func(mediaType, digest string) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": digest, "size": 3}
	}
	one, two := f.blob([]byte("one")), f.blob([]byte("two"))
	inner := f.manifest("inner", manifestType, map[string]any{"schemaVersion": 2, "layers": []any{layer("a/a", one), layer("b/b", two)}})
	platform := func(os, arch string) map[string]any {
		return map[string]any{"mediaType": manifestType, "digest": inner, "size": 3, "platform": map[string]any{"os": os, "architecture": arch}}
	}
	other := platform("linux", "arm64")
	other["digest"] = f.push("other", pack(t, nil))
	index := func(tag string, of ...any) string {
		return f.manifest(tag, indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": of})
	}
	for name, tc := range map[string]struct {
		digest, mediaType, layer string
		want                     error
	}{
		"the first":                  {inner, "", one, nil},
		"the first of its type":      {inner, "b/b", two, nil},
		"none of its type":           {inner, "c/c", "", oci.ErrLayer},
		"an artifact without layers": {f.push("none"), "", "", oci.ErrLayer},
		"an index":                   {index("index", other, platform("linux", "amd64")), "b/b", two, nil},
		"an index without a platform that we read": {index("arm", other), "", "", oci.ErrLayer},
	} {
		t.Run(name, func(t *testing.T) {
			remote := f.remote(oci.Login{}, oci.Options{})
			m, err := remote.Manifest(t.Context(), tc.digest)
			var got oci.Descriptor
			if err == nil {
				got, err = m.Layer(tc.mediaType)
			}
			if !errors.Is(err, tc.want) || got.Digest != tc.layer {
				t.Errorf("the layer is %q, %v; want %q, %v", got.Digest, err, tc.layer, tc.want)
			}
		})
	}
}

// TestManyLayers: of an artifact with a thousand layers one is fetched, and one whose size is another than its manifest says is refused.
func TestManyLayers(t *testing.T) {
	f := newFixture(t)
	blob := f.blob([]byte("one"))
	of := func(size int) map[string]any { return map[string]any{"mediaType": "a/a", "digest": blob, "size": size} }
	many := make([]any, 1000)
	for i := range many {
		many[i] = of(3)
	}
	push := func(tag string, layers ...any) string {
		return f.manifest(tag, manifestType, map[string]any{"schemaVersion": 2, "layers": layers})
	}
	for name, tc := range map[string]struct {
		digest string
		want   error
	}{
		"a thousand":          {push("many", many...), nil},
		"one of a size less":  {push("less", of(2)), oci.ErrDigest},
		"one of a size more":  {push("more", of(4)), oci.ErrDigest},
		"one of a huge size":  {push("huge", of(1<<40)), oci.ErrTooLarge},
		"one of a size below": {push("below", of(-1)), oci.ErrMalformed},
	} {
		remote := f.remote(oci.Login{}, oci.Options{})
		m, err := remote.Manifest(t.Context(), tc.digest)
		if err != nil {
			t.Fatal(err)
		}
		f.asked = nil
		layer, err := m.Layer("")
		var content []byte
		if err == nil {
			content, err = remote.Layer(t.Context(), layer)
		}
		if !errors.Is(err, tc.want) || err == nil && string(content) != "one" || len(f.asked) > 1 {
			t.Errorf("%s: %q, %v, after %v; want %v", name, content, err, f.asked, tc.want)
		}
	}
}

// TestHostileRegistries checks that what a registry says besides is refused, and repeated nowhere.
func TestHostileRegistries(t *testing.T) {
	type answer = func(w http.ResponseWriter, r *http.Request) bool
	// manifests answers each request for a manifest by digest.
	manifests := func(mediaType string, content func(r *http.Request) string) answer {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/sha256:") {
				return false
			}
			w.Header().Set("Content-Type", mediaType)
			fmt.Fprint(w, content(r))
			return true
		}
	}
	blobs := func(send func(w http.ResponseWriter, r *http.Request)) answer {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				send(w, r)
			}
			return strings.Contains(r.URL.Path, "/blobs/")
		}
	}
	for name, tc := range map[string]struct {
		before answer
		want   error
	}{
		"a manifest of another digest": {manifests(manifestType, func(*http.Request) string { return `{"schemaVersion":2,"note":"` + canary + `"}` }), oci.ErrDigest},
		"a manifest without an end":    {manifests(manifestType, func(*http.Request) string { return strings.Repeat(" ", 5<<20) }), oci.ErrTooLarge},
		"a layer of another digest":    {blobs(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, canary) }), oci.ErrDigest},
		"a layer that goes on": {blobs(func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				_, _ = w.Write(make([]byte, 64<<10))
			}
		}), oci.ErrDigest},
		"a layer that is somewhere else, where nobody may go": {blobs(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		}), oci.ErrRedirect},
		"a layer that is in a file": {blobs(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}), oci.ErrRedirect},
		"a layer that is always further on": {blobs(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }), oci.ErrRedirect},
		"a layer that is cut off": {blobs(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, canary)
		}), nil},
		"a layer that never comes": {blobs(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), context.DeadlineExceeded},
		"a registry that breaks down in the middle": {blobs(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), nil},
		"one that is busy in the middle": {blobs(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}), nil},
		"an error in words": {blobs(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusTeapot) }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			digest := f.push("latest", pack(t, map[string]string{"app.yaml": "one"}))
			f.before = tc.before
			remote := f.remote(oci.Login{Username: "u", Password: canary}, oci.Options{Timeout: 2 * time.Second})
			m, err := remote.Manifest(t.Context(), digest)
			if err == nil {
				layer, _ := m.Layer("")
				_, err = remote.Layer(t.Context(), layer)
			}
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("the error is %v, want %v", err, tc.want)
			}
			noCanary(t, err)
		})
	}
}

// TestIndexes is about what an index may lead to: one manifest, and no further.
func TestIndexes(t *testing.T) {
	f := newFixture(t)
	leaf := f.push("leaf", pack(t, nil))
	index := func(tag, digest string) string {
		return f.manifest(tag, indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []any{map[string]any{"mediaType": manifestType, "digest": digest, "size": 1}}})
	}
	one := index("one", leaf)
	two := index("two", one)
	for name, tc := range map[string]struct {
		digest string
		want   error
	}{
		"a manifest":    {leaf, nil},
		"an index":      {one, nil},
		"one of others": {two, oci.ErrMalformed},
	} {
		if _, err := f.remote(oci.Login{}, oci.Options{}).Manifest(t.Context(), tc.digest); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// TestTags checks that a list of tags is read page by page, and not for ever.
func TestTags(t *testing.T) {
	f := newFixture(t)
	f.push("2.0.0", pack(t, nil))
	page := func(link, tags string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v2/app/tags/list" {
				return false
			}
			last := r.URL.Query().Get("last") == "end"
			if !last {
				w.Header().Set("Link", link)
			}
			if last {
				tags = `"2.0.0"`
			}
			fmt.Fprintf(w, `{"tags":[%s]}`, tags)
			return true
		}
	}
	for name, tc := range map[string]struct {
		link, tags, want string
		err              error
	}{
		"two pages":                      {`</v2/app/tags/list?last=end>; rel="next"`, `"1.0.0"`, "2.0.0", nil},
		"the same page again":            {`</v2/app/tags/list>; rel="next"`, `"1.0.0"`, "", oci.ErrMalformed},
		"a page that has none":           {`</v2/app/tags/list?last=more>; rel="next"`, ``, "", oci.ErrTooLarge},
		"pages without an end":           {`</v2/app/tags/list?last=%d>; rel="next"`, `"1.0.0","1.0.1"`, "", oci.ErrTooLarge},
		"another repository":             {`</v2/other/tags/list?last=end>; rel="next"`, `"1.0.0"`, "", oci.ErrMalformed},
		"another host":                   {`<http://169.254.169.254/v2/app/tags/list?last=end>; rel="next"`, `"1.0.0"`, "", oci.ErrMalformed},
		"tags that would lead elsewhere": {"", `"2.0.0","9.0.0/../../x","` + canary + `"`, "2.0.0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				n++
				link := tc.link
				if strings.Contains(link, "%d") {
					link = fmt.Sprintf(link, n)
				}
				return page(link, tc.tags)(w, r)
			}
			got, err := f.remote(oci.Login{}, oci.Options{Limits: oci.Limits{Tags: 50}}).Resolve(t.Context(), oci.Ref{SemVer: ">=1.0.0"})
			if !errors.Is(err, tc.err) || got.Tag != tc.want {
				t.Errorf("Resolve = %v, %v; want %q, %v", got, err, tc.want, tc.err)
			}
			noCanary(t, err)
		})
	}
}

// TestBusyRegistries checks that a registry is left alone for as long as it asks for.
func TestBusyRegistries(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		header string
		want   time.Duration
	}{
		"seconds":           {"120", 2 * time.Minute},
		"a time":            {"Sat, 01 Aug 2026 12:05:00 GMT", 5 * time.Minute},
		"a time long ago":   {"Sat, 01 Aug 2020 12:05:00 GMT", 0},
		"longer than ever":  {"4000000000", time.Hour},
		"nothing":           {"", 0},
		"what nobody reads": {canary, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.push("latest", pack(t, nil))
			f.before = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", tc.header)
				w.WriteHeader(http.StatusTooManyRequests)
				return true
			}
			remote := f.remote(oci.Login{}, oci.Options{Clock: now})
			_, err := remote.Resolve(t.Context(), oci.Ref{})
			var busy *oci.BusyError
			if !errors.As(err, &busy) || busy.After != tc.want {
				t.Fatalf("the error is %v, want one for %s", err, tc.want)
			}
			noCanary(t, err)
			f.before = nil
			_, err = remote.Resolve(t.Context(), oci.Ref{})
			if again := errors.As(err, &busy); again != (tc.want > 0) {
				t.Errorf("asked again at once: %v", err)
			}
			if asked, want := len(f.asked), map[bool]int{true: 1, false: 2}[tc.want > 0]; asked != want {
				t.Errorf("%d requests, want %d", asked, want)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]error{
		"oci://ghcr.io/org/app":            nil,
		"oci://127.0.0.1:5000/app":         nil,
		"oci://docker.io/app":              nil,
		"oci://ghcr.io/org/app:latest":     oci.ErrURL,
		"oci://ghcr.io/org/app@sha256:abc": oci.ErrURL,
		"https://ghcr.io/org/app":          oci.ErrURL,
		"oci://u:" + canary + "@h/app":     oci.ErrURL,
		"oci://ghcr.io/../app":             oci.ErrURL,
		"oci://ghcr.io/app?x=y":            oci.ErrURL,
		"oci://":                           oci.ErrURL,
		"oci://GHCR.io/App":                oci.ErrURL,
	} {
		_, err := oci.NewRemote(url, oci.Access{}, oci.Options{})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
		noCanary(t, err)
	}
}

func TestRevisions(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]oci.Target{
		"latest@" + digest: {Tag: "latest", Digest: digest},
		digest:             {Digest: digest},
		"@" + digest:       {},
		"main@sha1:1":      {},
		"a b@" + digest:    {},
		"":                 {},
	} {
		got, err := oci.ParseRevision(text)
		if got != want || (err == nil) != (want.Digest != "") {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
		if err == nil && got.Revision() != text {
			t.Errorf("%q becomes %q", text, got.Revision())
		}
	}
}
