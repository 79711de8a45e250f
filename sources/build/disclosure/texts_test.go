package disclosure_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/sources/build/disclosure"
)

func TestMarksOfWhatWasEncrypted(t *testing.T) {
	named := func(name string, fields map[string]any) map[string]any {
		fields["metadata"] = map[string]any{"name": name}
		return fields
	}
	texts := disclosure.NewTexts([]string{"q7", "abcd", "a long password", "8417230956", " \n"})
	for name, tc := range map[string]struct {
		content map[string]any
		want    string
	}{
		"nothing of it":                        {named("web", map[string]any{"data": map[string]any{"a": "b"}}), ""},
		"a value":                              {named("web", map[string]any{"data": map[string]any{"a": "abcd"}}), "fields"},
		"a short one within a text":            {named("web", map[string]any{"data": map[string]any{"a": "xabcdx"}}), ""},
		"a long one within a text":             {named("web", map[string]any{"list": []any{"x", "is a long password."}}), "fields"},
		"one that is too short to be told":     {named("web", map[string]any{"data": map[string]any{"a": "q7"}}), ""},
		"a number":                             {named("web", map[string]any{"spec": map[string]any{"port": int64(8417230956)}}), "fields"},
		"a key":                                {named("web", map[string]any{"data": map[string]any{"abcd": "b"}}), "fields"},
		"its name":                             {named("abcd", map[string]any{}), "name"},
		"a Secret, whose values are not shown": {named("web", map[string]any{"kind": "Secret", "data": map[string]any{"a": "abcd"}}), ""},
		"the name of a Secret":                 {named("abcd", map[string]any{"kind": "Secret"}), "name"},
	} {
		if got := texts.MarkFor(tc.content, "name", "fields"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if none := disclosure.NewTexts([]string{"q7"}); none.MarkFor(named("q7", map[string]any{}), "name", "fields") != "" {
		t.Error("what is too short marks an object")
	}
}

// TestMuchToCompare: what would take too long to compare is marked.
func TestMuchToCompare(t *testing.T) {
	var values []string
	for n := range 2000 {
		values = append(values, strings.Repeat("x", n+8)+"!")
	}
	texts := disclosure.NewTexts(values)
	if !texts.In(strings.Repeat("y", 1<<20)) {
		t.Error("it is compared to the end")
	}
}
