package excerpt_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		names []string
		want  string
	}{
		"none":                 {nil, ""},
		"one":                  {[]string{"a"}, "a"},
		"as many as are named": {[]string{"a", "b"}, "a, b"},
		"one more":             {[]string{"a", "b", "c"}, "a, b and 1 more"},
		"several more":         {[]string{"a", "b", "c", "d", "e"}, "a, b and 3 more"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := excerpt.Names(c.names, 2); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
