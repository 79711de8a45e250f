package oci

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseChallenge(t *testing.T) {
	for text, want := range map[string]challenge{
		`Bearer realm="https://a.test/t",service="r",scope="repository:app:pull,push"`: {"bearer", "https://a.test/t", "r", "repository:app:pull,push"},
		`bearer realm=https://a.test/t, service=r`:                                     {"bearer", "https://a.test/t", "r", ""},
		`Basic realm="a \"b\""`:                                                        {"basic", `a "b"`, "", ""},
		`Basic`:                                                                        {"basic", "", "", ""},
		`Basic realm="a", Bearer realm="b"`:                                            {"basic", "a", "", ""},
		`Bearer realm="never closed`:                                                   {"bearer", "never closed", "", ""},
		``:                                                                             {},
	} {
		if got := parseChallenge(text); got != want {
			t.Errorf("%s is read as %+v, want %+v", text, got, want)
		}
	}
}

// FuzzParseChallenge checks that a challenge is read in full, whatever it is, and has nothing that is not in it.
func FuzzParseChallenge(f *testing.F) {
	f.Add(`Bearer realm="https://a.test/t",service="r",scope="repository:app:pull"`)
	f.Add(`Basic realm="a \"b\"", Bearer realm=x`)
	f.Fuzz(func(t *testing.T, text string) {
		c := parseChallenge(text)
		plain := strings.ReplaceAll(text, `\`, "")
		for _, value := range []string{c.realm, c.service, c.scope} {
			if !strings.Contains(plain, strings.ReplaceAll(value, `\`, "")) {
				t.Errorf("%q is read out of %q", value, text)
			}
		}
	})
}

// FuzzManifest checks that what is read out of a manifest can be asked for.
func FuzzManifest(f *testing.F) {
	f.Add(ociManifest, []byte(`{"schemaVersion":2,"layers":[{"mediaType":"a/a","digest":"sha256:`+strings.Repeat("a", 64)+`","size":3}]}`))
	f.Add(ociIndex, []byte(`{"schemaVersion":2,"manifests":[{"digest":"sha256:`+strings.Repeat("a", 64)+`","size":3}]}`))
	f.Fuzz(func(t *testing.T, mediaType string, content []byte) {
		m, next, err := parse(mediaType, content)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 200 {
				t.Errorf("the error repeats what it is about: %q", err)
			}
			return
		}
		if next != nil && !digests.MatchString(next.Digest) {
			t.Errorf("the next manifest has the digest %q", next.Digest)
		}
		if layer, err := m.Layer(""); err == nil && (!digests.MatchString(layer.Digest) || layer.Size < 0) {
			t.Errorf("the layer is %+v", layer)
		}
	})
}

// FuzzReferrers checks that what is read out of a list of what refers to an artifact is of the kind that is read.
func FuzzReferrers(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"artifactType":"application/vnd.dev.sigstore.bundle.v0.3+json","digest":"sha256:` + strings.Repeat("a", 64) + `","size":3}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		var page document
		if json.Unmarshal(content, &page) != nil {
			return
		}
		for _, of := range []form{ofCosign(), ofNotation()} {
			for _, d := range of.among(page.Manifests) {
				if d.ArtifactType != "" && d.ArtifactType != emptyConfig && !strings.HasPrefix(d.ArtifactType, of.artifact) {
					t.Errorf("%q is read", d.ArtifactType)
				}
				if d.check("a signature") == nil && !digests.MatchString(d.Digest) {
					t.Errorf("the digest is %q", d.Digest)
				}
			}
		}
	})
}

// FuzzAfter checks that the next page of a list is one of the same list.
func FuzzAfter(f *testing.F) {
	f.Add(`</v2/app/tags/list?last=a>; rel="next"`)
	f.Add(`<http://127.0.0.1/v2/app/tags/list?last=a>; rel="next"`)
	r, err := NewRemote("oci://registry.test/app", Access{}, Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, link string) {
		at := r.Path("tags", "list")
		next, err := after(at, link)
		if err == nil && next != nil && (next.Host != at.Host || next.Scheme != at.Scheme || next.Path != at.Path || next.User != nil) {
			t.Errorf("%q leads to %s", link, next)
		}
	})
}
