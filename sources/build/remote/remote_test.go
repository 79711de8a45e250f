package remote_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/sources/build/remote"
)

func TestIs(t *testing.T) {
	for entry, want := range map[string]bool{
		"../base": false, "a.yaml": false, "apps/web@v1": false, "": false,
		"https://example.com/a.yaml": true, " http://example.com": true, "ssh://git@example.com/x": true, "git::x": true,
		"github.com/org/repo": true, "GH:org/repo": true, "git@example.com:org/repo": true, "//example.com/x": true,
	} {
		if got := remote.Is(entry); got != want {
			t.Errorf("%q: %t, want %t", entry, got, want)
		}
	}
}
