package oci_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/ociserver"
	"github.com/flotilla-io/flotilla/sources/oci"
)

const (
	bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"
	simpleType = "application/vnd.dev.cosign.simplesigning.v1+json"
	emptyType  = "application/vnd.oci.empty.v1+json"
)

// referrer pushes a manifest with a layer that refers to something, and returns what points at it.
func (f *fixture) referrer(artifactType, layerType string, content []byte) map[string]any {
	f.t.Helper()
	manifest := map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "artifactType": artifactType,
		"config": map[string]any{"mediaType": emptyType, "digest": f.blob([]byte("{}")), "size": 2},
		"layers": []any{map[string]any{"mediaType": layerType, "digest": f.blob(content), "size": len(content)}},
	}
	return map[string]any{"mediaType": manifestType, "artifactType": artifactType, "size": 1, "digest": f.manifest("m"+sum(content)[7:20], manifestType, manifest)}
}

// index has a list stand under a tag, whatever it names.
func (f *fixture) index(tag string, manifests ...map[string]any) {
	f.t.Helper()
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	if err != nil {
		f.t.Fatal(err)
	}
	f.stands(tag, string(text))
}

func (f *fixture) stands(tag, text string) {
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/manifests/"+tag) {
			return false
		}
		_, _ = io.WriteString(w, text)
		return true
	}
}

func tagOf(digest string) string { return strings.Replace(digest, ":", "-", 1) }

func texts(signatures []oci.Signature) []string {
	var out []string
	for _, s := range signatures {
		out = append(out, fmt.Sprintf("%s %v", s.Content, s.Annotations))
	}
	return out
}

// TestBundles is about where bundles are looked for, and which are left out.
func TestBundles(t *testing.T) {
	many := func(f *fixture, n int) []map[string]any {
		var out []map[string]any
		for i := range n {
			out = append(out, f.referrer(bundleType, bundleType, fmt.Appendf(nil, "%d", i)))
		}
		return out
	}
	unread := map[string]string{
		"more than are read":      "; it has more than 32 signatures, and the others are not read",
		"more than are looked at": "; more than 1000 artifacts refer to it, and the others are not looked at",
	}
	for name, tc := range map[string]struct {
		push  func(f *fixture, tag string)
		want  []string
		fails error
	}{
		"more than are looked at": {func(f *fixture, tag string) {
			other := f.referrer("application/spdx+json", bundleType, []byte("a list of parts"))
			all := make([]map[string]any, 1001)
			for i := range all {
				all[i] = other
			}
			f.index(tag, append(all, f.referrer(bundleType, bundleType, []byte("one")))...)
		}, nil, nil},
		"nothing": {func(*fixture, string) {}, nil, nil},
		"some, and what is none": {func(f *fixture, tag string) {
			gone := map[string]any{"mediaType": manifestType, "artifactType": bundleType, "size": 1, "digest": sum([]byte("gone"))}
			f.index(tag, f.referrer("application/spdx+json", bundleType, []byte("a list of parts")), f.referrer(bundleType, bundleType, []byte("one")), gone,
				f.referrer(bundleType, "text/plain", []byte("a text")), f.referrer(emptyType, bundleType, []byte("two")))
		}, []string{"one map[]", "two map[]"}, nil},
		"one that is too large": {func(f *fixture, tag string) {
			f.index(tag, f.referrer(bundleType, bundleType, make([]byte, 1<<20+1)))
		}, nil, nil},
		"more than are read":  {func(f *fixture, tag string) { f.index(tag, many(f, 40)...) }, texts(numbered(32)), nil},
		"a list that is none": {func(f *fixture, tag string) { f.stands(tag, "[]") }, nil, oci.ErrMalformed},
		"a name that is none": {func(f *fixture, tag string) {
			f.index(tag, map[string]any{"mediaType": manifestType, "artifactType": bundleType, "size": 1, "digest": "../../x"})
		}, nil, oci.ErrMalformed},
		"a registry that is busy": {func(f *fixture, _ string) {
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		}, nil, &oci.BusyError{Status: 503}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			digest := f.push("latest", []byte("x"))
			tc.push(f, tagOf(digest))
			all := f.remote(oci.Login{}, oci.Options{}).Signatures(digest)
			got, err := all.Bundles(t.Context())
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := unread[name]; all.Unread() != want {
				t.Errorf("%q, want %q", all.Unread(), want)
			}
			var busy *oci.BusyError
			if errors.As(tc.fails, &busy) && errors.As(err, &busy) {
				return
			}
			if !errors.Is(err, tc.fails) {
				t.Errorf("error %v, want %v", err, tc.fails)
			}
		})
	}
}

// TestEnvelopes is about which signatures of Notation are read, and that their form is told.
func TestEnvelopes(t *testing.T) {
	const notary = "application/vnd.cncf.notary.signature"
	f := newFixture(t)
	digest := f.push("latest", []byte("x"))
	f.index(tagOf(digest), f.referrer(bundleType, bundleType, []byte("a bundle")), f.referrer(notary, "application/jose+json", []byte("one")),
		f.referrer(notary, "text/plain", []byte("a text")), f.referrer(emptyType, "application/cose", []byte("two")), f.referrer(emptyType, bundleType, []byte("another bundle")))
	got, err := f.remote(oci.Login{}, oci.Options{}).Signatures(digest).Envelopes(t.Context())
	want := []oci.Signature{{Content: []byte("one"), MediaType: "application/jose+json"}, {Content: []byte("two"), MediaType: "application/cose"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestDescribe is about what a digest stands for.
func TestDescribe(t *testing.T) {
	f := newFixture(t)
	digest := f.push("latest", []byte("x"))
	remote := f.remote(oci.Login{}, oci.Options{})
	got, err := remote.Describe(t.Context(), digest)
	if err != nil || got.MediaType != manifestType || got.Digest != digest || got.Size < 100 {
		t.Errorf("%+v, %v", got, err)
	}
	f.stands(digest, `{"schemaVersion":2}`)
	if got, err := remote.Describe(t.Context(), digest); !errors.Is(err, oci.ErrDigest) {
		t.Errorf("something else: %+v, %v", got, err)
	}
}

func numbered(n int) []oci.Signature {
	var out []oci.Signature
	for i := range n {
		out = append(out, oci.Signature{Content: fmt.Appendf(nil, "%d", i)})
	}
	return out
}

// TestReferrers checks that a registry's own list is read, page by page, and no other.
func TestReferrers(t *testing.T) {
	f := newFixture(t)
	digest := f.push("latest", []byte("x"))
	one, two := f.referrer(bundleType, bundleType, []byte("one")), f.referrer(bundleType, bundleType, []byte("two"))
	f.index(tagOf(digest), f.referrer(bundleType, bundleType, []byte("of the tag")))
	f.asked = nil
	link := `</v2/app/referrers/` + digest + `?next=2>; rel="next"`
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/referrers/") {
			return false
		}
		of := one
		if r.URL.RawQuery == "" {
			w.Header().Set("Link", link)
		} else {
			of = two
		}
		_, _ = fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[{"artifactType":%q,"digest":%q,"size":1}]}`, bundleType, of["digest"])
		return true
	}
	remote := f.remote(oci.Login{}, oci.Options{})
	got, err := remote.Signatures(digest).Bundles(t.Context())
	if diff := cmp.Diff([]string{"one map[]", "two map[]"}, texts(got)); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	link = `<http://elsewhere.test/v2/app/referrers/` + digest + `>; rel="next"`
	if _, err := remote.Signatures(digest).Bundles(t.Context()); !errors.Is(err, oci.ErrMalformed) {
		t.Errorf("a list that goes on elsewhere: %v", err)
	}
	if _, err := remote.Signatures("latest").Bundles(t.Context()); !errors.Is(err, oci.ErrRef) {
		t.Errorf("of no digest: %v", err)
	}
}

// TestSimpleSignatures is about the signatures in the tag that a digest has for them.
func TestSimpleSignatures(t *testing.T) {
	layer := func(f *fixture, mediaType, content string, size int) map[string]any {
		return map[string]any{"mediaType": mediaType, "digest": f.blob([]byte(content)), "size": size, "annotations": map[string]string{"sig": content}}
	}
	manifest := func(f *fixture, tag string, layers ...map[string]any) {
		f.manifest(tag+".sig", manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "layers": layers})
	}
	for name, tc := range map[string]struct {
		push  func(f *fixture, tag string)
		want  []string
		fails error
	}{
		"nothing": {func(*fixture, string) {}, nil, nil},
		"some, and what is none": {func(f *fixture, tag string) {
			manifest(f, tag, layer(f, "text/plain", "none", 4), layer(f, simpleType, "one", 3), layer(f, simpleType, "cut off", 3), layer(f, simpleType, "two", 3),
				layer(f, simpleType, "too large", 64<<10+1), map[string]any{"mediaType": simpleType, "digest": sum([]byte("gone")), "size": 4})
		}, []string{"one map[sig:one]", "two map[sig:two]"}, nil},
		"a manifest that is none": {func(f *fixture, tag string) { f.manifest(tag+".sig", manifestType, map[string]any{}) }, nil, oci.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			digest := f.push("latest", []byte("x"))
			tc.push(f, tagOf(digest))
			got, err := f.remote(oci.Login{}, oci.Options{}).Signatures(digest).Simple(t.Context())
			if diff := cmp.Diff(tc.want, texts(got)); diff != "" || !errors.Is(err, tc.fails) {
				t.Errorf("error %v, want %v (-want +got):\n%s", err, tc.fails, diff)
			}
		})
	}
	if _, err := newFixture(t).remote(oci.Login{}, oci.Options{}).Signatures("latest").Simple(t.Context()); !errors.Is(err, oci.ErrRef) {
		t.Errorf("of no digest: %v", err)
	}
}

// TestSignaturesOfARegistry checks that what cosign pushes is found, whether a registry keeps lists or not.
func TestSignaturesOfARegistry(t *testing.T) {
	for name, server := range map[string]*ociserver.Server{"without lists": ociserver.New(), "with lists": ociserver.NewWithReferrers()} {
		f := unstarted(t)
		f.real = server
		f.start()
		digest, err := server.Push(t.Context(), "app", "latest", map[string]string{"a": "b"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.PushBundles(t.Context(), "app", digest, []byte("a bundle")); err != nil {
			t.Fatal(err)
		}
		got, err := f.remote(oci.Login{}, oci.Options{}).Signatures(digest).Bundles(t.Context())
		if diff := cmp.Diff([]string{"a bundle map[]"}, texts(got)); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
		asked := strings.Join(f.asked, "\n")
		if fallback := strings.Contains(asked, "/manifests/"+tagOf(digest)); fallback != (name == "without lists") {
			t.Errorf("%s: asked for\n%s", name, asked)
		}
	}
}
