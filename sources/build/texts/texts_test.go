package texts_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/flotilla-io/flotilla/sources/build/texts"
)

func TestEach(t *testing.T) {
	type text struct{ Key, Value string }
	for name, tc := range map[string]struct {
		of   string
		want []text
	}{
		"a text alone":             {of: "a", want: []text{{"", "a"}}},
		"a list below a key":       {of: "{a: [b, c]}", want: []text{{"", "a"}, {"a", "b"}, {"a", "c"}}},
		"annotations":              {of: "{annotations: {a: b}, c: d}", want: []text{{"", "annotations"}, {"", "c"}, {"c", "d"}}},
		"an alias":                 {of: "{a: &x b, c: *x}", want: []text{{"", "a"}, {"a", "b"}, {"", "c"}, {"c", "b"}}},
		"an alias of annotations":  {of: "{annotations: &x {a: b}, c: *x}", want: []text{{"", "annotations"}, {"", "c"}, {"c", "a"}, {"a", "b"}}},
		"a key that is an alias":   {of: "{a: &x b, *x : c}", want: []text{{"", "a"}, {"a", "b"}, {"", "b"}, {"b", "c"}}},
		"what a mapping is merged": {of: "{a: &x {b: c}, <<: *x}", want: []text{{"", "a"}, {"", "<<"}, {"a", "b"}, {"b", "c"}, {"<<", "b"}, {"b", "c"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var node yaml.Node
			if err := yaml.Unmarshal([]byte(tc.of), &node); err != nil {
				t.Fatal(err)
			}
			var got []text
			if err := texts.Each(&node, func(key, value string) error {
				got = append(got, text{key, value})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachEndsWithAnError(t *testing.T) {
	enough, calls := errors.New("enough"), 0
	var node yaml.Node
	if err := yaml.Unmarshal([]byte("[a, b]"), &node); err != nil {
		t.Fatal(err)
	}
	err := texts.Each(&node, func(string, string) error {
		calls++
		return enough
	})
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
