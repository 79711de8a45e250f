package registration

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// TestTokensForScripts: what the table says in words is whole there.
func TestTokensForScripts(t *testing.T) {
	now := time.Date(2026, 3, 5, 9, 30, 0, 0, time.UTC)
	all := []token.Info{
		{ID: "aaaaaa", Usages: []string{"signing"}, Groups: []string{"system:bootstrappers:x"}, Description: "the\nrack"},
		{ID: "bbbbbb", Expires: now.Add(time.Hour), Used: true},
		{ID: "cccccc", Expires: now},
	}
	for format, want := range map[string]string{
		"name": "aaaaaa\nbbbbbb\ncccccc\n",
		"yaml": `apiVersion: cli.flotilla.io/v1alpha1
items:
- description: |-
    the
    rack
  groups:
  - system:bootstrappers:x
  id: aaaaaa
  usages:
  - signing
- expires: "2026-03-05T10:30:00Z"
  id: bbbbbb
  used: true
- expired: true
  expires: "2026-03-05T09:30:00Z"
  id: cccccc
kind: TokenList
`,
	} {
		var out bytes.Buffer
		if err := printTokens(&out, all, format, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("-o %s (-want +got):\n%s", format, diff)
		}
	}
	var out bytes.Buffer
	if err := printTokens(&out, nil, "json", now); err != nil {
		t.Fatal(err)
	}
	const none = "{\n  \"apiVersion\": \"cli.flotilla.io/v1alpha1\",\n  \"kind\": \"TokenList\",\n  \"items\": []\n}\n"
	if diff := cmp.Diff(none, out.String()); diff != "" {
		t.Errorf("none, -o json (-want +got):\n%s", diff)
	}
}
