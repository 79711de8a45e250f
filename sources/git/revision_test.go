package git_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/git"
)

func TestParseRevision(t *testing.T) {
	sha1, sha256 := strings.Repeat("1a", 20), strings.Repeat("2b", 32)
	cases := map[string]struct {
		text  string
		want  git.Revision
		short string
		bad   bool
	}{
		"a branch":                     {text: "main@sha1:" + sha1, want: git.Revision{Pointer: "main", Algorithm: "sha1", Checksum: sha1}, short: "main@sha1:1a1a1a1a"},
		"a pointer with slash and at":  {text: "a/b@c@sha1:" + sha1, want: git.Revision{Pointer: "a/b@c", Algorithm: "sha1", Checksum: sha1}, short: "a/b@c@sha1:1a1a1a1a"},
		"a full ref":                   {text: "refs/pull/1/head@sha1:" + sha1, want: git.Revision{Pointer: "refs/pull/1/head", Algorithm: "sha1", Checksum: sha1}, short: "refs/pull/1/head@sha1:1a1a1a1a"},
		"a checksum alone":             {text: "sha256:" + sha256, want: git.Revision{Algorithm: "sha256", Checksum: sha256}, short: "sha256:2b2b2b2b"},
		"nothing":                      {text: "", bad: true},
		"a checksum that is too short": {text: "main@sha1:1a1a1a1a", bad: true},
		"upper case":                   {text: "sha1:" + strings.ToUpper(sha1), bad: true},
		"an unknown algorithm":         {text: "main@md5:" + sha1, bad: true},
		"an empty pointer":             {text: "@sha1:" + sha1, bad: true},
		"white space in the pointer":   {text: "ma in@sha1:" + sha1, bad: true},
		"Flux's old form":              {text: "main/" + sha1, bad: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := git.ParseRevision(tc.text)
			if (err != nil) != tc.bad {
				t.Fatalf("error = %v, want one: %t", err, tc.bad)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("revision (-want +got):\n%s", diff)
			}
			if got.Short() != tc.short {
				t.Errorf("Short = %q, want %q", got.Short(), tc.short)
			}
		})
	}
}

func FuzzParseRevision(f *testing.F) {
	f.Add("main@sha1:" + strings.Repeat("0", 40))
	f.Add("a@b@sha256:" + strings.Repeat("0", 64))
	f.Add("@@:")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := git.ParseRevision(text)
		if err == nil && r.String() != text {
			t.Errorf("%q reads back as %q", text, r.String())
		}
	})
}
