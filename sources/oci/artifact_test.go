package oci_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/oci"
)

// address is what ParseArtifact makes of an address.
type address struct {
	URL string
	Ref oci.Ref
	Err string
}

func addressOf(text string) address {
	url, ref, err := oci.ParseArtifact(text)
	if err != nil {
		return address{Err: err.Error()}
	}
	return address{URL: url, Ref: ref}
}

// TestParseArtifact is about the addresses that people give to commands.
func TestParseArtifact(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	shape := func(of string) address {
		return address{Err: `unusable repository URL "` + of + `": write oci://host/repository:tag, or oci://host/repository@sha256:digest`}
	}
	behind := address{Err: "unusable repository URL: what stands behind @ is no digest: write oci://host/repository@sha256: and 64 hex digits"}
	for name, test := range map[string]struct {
		text string
		want address
	}{
		"a tag":                            {"oci://ghcr.io/org/app:v1.0", address{URL: "oci://ghcr.io/org/app", Ref: oci.Ref{Tag: "v1.0"}}},
		"none":                             {"oci://ghcr.io/org/app", address{URL: "oci://ghcr.io/org/app"}},
		"a port, and no tag":               {"oci://localhost:5000/app", address{URL: "oci://localhost:5000/app"}},
		"a port and a tag":                 {"oci://localhost:5000/app:v1", address{URL: "oci://localhost:5000/app", Ref: oci.Ref{Tag: "v1"}}},
		"a digest":                         {"oci://ghcr.io/app@" + digest, address{URL: "oci://ghcr.io/app", Ref: oci.Ref{Digest: digest}}},
		"a tag and a digest":               {"oci://ghcr.io/app:v1@" + digest, address{URL: "oci://ghcr.io/app", Ref: oci.Ref{Tag: "v1", Digest: digest}}},
		"an address in brackets":           {"oci://[::1]:5000/app:v1", address{URL: "oci://[::1]:5000/app", Ref: oci.Ref{Tag: "v1"}}},
		"no scheme":                        {"ghcr.io/org/app:v1", shape("ghcr.io/org/app:v1")},
		"a port alone":                     {"oci://localhost:5000", shape("oci://localhost:5000")},
		"an empty tag":                     {"oci://ghcr.io/app:", shape("oci://ghcr.io/app:")},
		"capitals":                         {"oci://ghcr.io/App:v1", shape("oci://ghcr.io/App:v1")},
		"a query":                          {"oci://ghcr.io/app?x=1", shape("oci://ghcr.io/app?x=1")},
		"a digest that is too short":       {"oci://ghcr.io/app@sha256:abc", behind},
		"a login, which must not be shown": {"oci://me:" + canary + "@ghcr.io/app", behind},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, addressOf(test.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParseArtifact: an address that is taken names the same when it is put together again.
func FuzzParseArtifact(f *testing.F) {
	for _, seed := range []string{"oci://ghcr.io/org/app:v1", "oci://[::1]:1/a", "oci://a/b@sha256:" + strings.Repeat("0", 64), "oci://a:b@c/d", "oci://:/", "oci://a/b:c:d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		url, ref, err := oci.ParseArtifact(text)
		if err != nil {
			if !errors.Is(err, oci.ErrURL) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again := url
		if ref.Tag != "" {
			again += ":" + ref.Tag
		}
		if ref.Digest != "" {
			again += "@" + ref.Digest
		}
		if again != text {
			t.Fatalf("%q became %q", text, again)
		}
		if _, _, err := oci.Place(url); err != nil {
			t.Fatalf("%q: %v", url, err)
		}
	})
}
