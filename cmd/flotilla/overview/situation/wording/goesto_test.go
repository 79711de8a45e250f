package wording_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
)

func TestGoesTo(t *testing.T) {
	for name, tc := range map[string]struct {
		outside string
		total   int
		want    string
	}{
		"it goes to clusters":          {"", 2, "1/2"},
		"it goes to none":              {"", 0, "-"},
		"it goes outside of the fleet": {"https://example.com", 0, "outside"},
	} {
		if got := wording.GoesTo(tc.outside, tc.total, "1/2"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
