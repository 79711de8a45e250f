package excerpt_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

func TestRevisions(t *testing.T) {
	sha1, sha256 := strings.Repeat("7d1cca4d00", 4), strings.Repeat("0123456789abcdef", 4)
	for name, tc := range map[string]struct{ text, want string }{
		"none":                  {"it is not ready", "it is not ready"},
		"of a branch":           {"revision main@sha1:" + sha1 + " would remove it", "revision main@sha1:7d1cca4d would remove it"},
		"two of them":           {"main@sha1:" + sha1 + ": v1@sha256:" + sha256, "main@sha1:7d1cca4d: v1@sha256:01234567"},
		"what is short already": {"main@sha1:7d1cca4d", "main@sha1:7d1cca4d"},
		"what is no commit":     {"secret " + sha1, "secret " + sha1},
		"what only begins so":   {"main@sha1:" + sha1 + "-dirty.x" + sha1, "main@sha1:7d1cca4d-dirty.x" + sha1},
		"a value to copy":       {"revision main@sha1:" + sha1 + ": allow it: \"main@sha1:" + sha1 + ",secret/a\", at " + "main@sha1:" + sha1, "revision main@sha1:7d1cca4d: allow it: \"main@sha1:" + sha1 + ",secret/a\", at main@sha1:7d1cca4d"},
		"what was cut":          {"allow it: \"main@sha1:" + sha1, "allow it: \"main@sha1:7d1cca4d"},
		"what is longer":        {"sha1:" + sha256 + "00", "sha1:" + sha256 + "00"},
	} {
		if got := excerpt.Revisions(tc.text); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestShortRevision: as much of a commit as tells it from others, whatever stands before it.
func TestShortRevision(t *testing.T) {
	sha1 := strings.Repeat("7d1cca4d00", 4)
	for name, tc := range map[string]struct{ revision, want string }{
		"of a branch":            {"main@sha1:" + sha1, "main@sha1:7d1cca4d"},
		"of a branch with colon": {"fix:it@sha1:" + sha1, "fix:it@sha1:7d1cca4d"},
		"short already":          {"main@sha1:7d1cca4d", "main@sha1:7d1cca4d"},
		"without a digest":       {"v1.2.3", "v1.2.3"},
		"none yet":               {"", "-"},
	} {
		if got := excerpt.ShortRevision(tc.revision); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
