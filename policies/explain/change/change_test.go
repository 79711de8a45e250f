package change_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/explain/change"
)

func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

func TestBetween(t *testing.T) {
	many := object()
	for i := range 300 {
		many[strings.Repeat("k", i+1)] = true
	}
	for name, tc := range map[string]struct {
		old, now any
		want     []change.Change
	}{
		"nothing changed":                 {object("a", int64(1)), object("a", int64(1)), nil},
		"fields come, go and change":      {object("gone", "x", "is", int64(1)), object("is", int64(2), "new", true), []change.Change{{Path: "/gone", Old: "x"}, {Path: "/is", Old: int64(1), New: int64(2)}, {Path: "/new", New: true}}},
		"a list of one length is entered": {[]any{"a", "b"}, []any{"a", "c"}, []change.Change{{Path: "/1", Old: "b", New: "c"}}},
		"one of another length is whole":  {[]any{"a"}, []any{"a", "b"}, []change.Change{{Old: []any{"a"}, New: []any{"a", "b"}}}},
		"a key with a slash and a tilde":  {object(), object("a/b~c", "x"), []change.Change{{Path: "/a~1b~0c", New: "x"}}},
		"an object becomes a text":        {object("a", object("b", "x")), object("a", "x"), []change.Change{{Path: "/a", Old: object("b", "x"), New: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, change.Between(tc.old, tc.now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := len(change.Between(object(), many)); got != 200 {
		t.Errorf("%d changes are kept of 300, want 200", got)
	}
	if got := len(change.All(object(), many)); got != 300 {
		t.Errorf("%d changes are all of 300", got)
	}
}

func TestCarried(t *testing.T) {
	all := []change.Change{{Path: "/spec/replicas"}, {Path: "/status"}, {Path: "/metadata/labels/a"}}
	carried := []change.Change{{Path: "/spec/replicas"}, {Path: "/metadata/labels"}}
	want := []change.Change{{Path: "/metadata/labels"}, {Path: "/spec/replicas"}, {Path: "/status", NotCarried: true}}
	if diff := cmp.Diff(want, change.Carried(all, carried)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConceal(t *testing.T) {
	got := []change.Change{
		{Path: "/data/password", Old: "b2xk", New: "bmV3dw=="},
		{Path: "/stringData", New: object("a", "b")},
		{Path: "/data/list", New: []any{"secret"}},
		{Path: "", Old: object("data", object("a", "b"))},
		{Path: "/metadata/name", New: "shown"},
	}
	change.Conceal(got)
	want := []change.Change{
		{Path: "/data/password", Old: "(4 bytes)", New: "(8 bytes)"},
		{Path: "/stringData", New: "(1 keys)"},
		{Path: "/data/list", New: "(concealed)"},
		{Path: "", Old: "(1 keys)"},
		{Path: "/metadata/name", New: "shown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	for name, tc := range map[string]struct {
		of   change.Change
		want string
	}{
		"a number":                            {change.Change{Old: int64(1), New: int64(2)}, "1 → 2"},
		"one that is new":                     {change.Change{New: "<b>"}, `new: "<b>"`},
		"one that is gone":                    {change.Change{Old: true}, "removed: true"},
		"one that reaches no cluster":         {change.Change{New: "x", NotCarried: true}, `new: "x" (not carried)`},
		"of lines those that differ":          {change.Change{Old: "a\nb\nc", New: "a\nx\nc"}, `"b" → "x"`},
		"a long one is cut":                   {change.Change{New: strings.Repeat("a", 100)}, `new: "` + strings.Repeat("a", 68) + "…"},
		"what cannot be written is no reason": {change.Change{New: func() {}}, "new: ?"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.Text(); got != tc.want {
				t.Errorf("Text = %q, want %q", got, tc.want)
			}
		})
	}
}
