package trailer_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/trailer"
)

func TestAllowed(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"a subject alone":                    {"Flotilla-Allow-Delete: namespace/shop", "!namespace/shop"},
		"nothing":                            {"", ""},
		"none":                               {"Sell\n\nMore things.\n", ""},
		"one":                                {"Sell\n\nNo more things.\n\nFlotilla-Allow-Delete: namespace/shop\n", "namespace/shop"},
		"several":                            {"Sell\n\nSigned-off-by: A\nflotilla-allow-delete: a/b,c/d/e\nFlotilla-Allow-Delete:  f/g , ", "a/b, c/d/e, f/g"},
		"with the ends of Windows":           {"Sell\r\n\r\nFlotilla-Allow-Delete: a/b\r\nFlotilla-Allow-Delete: c/d\r\n", "a/b, c/d"},
		"with those of an old Mac":           {"Sell\r\rFlotilla-Allow-Delete: a/b\r", "a/b"},
		"twice":                              {"Sell\n\nFlotilla-Allow-Delete: a/b, a/b\nFlotilla-Allow-Delete: a/b", "a/b"},
		"folded, as Git has it":              {"Sell\n\nFlotilla-Allow-Delete: a/b,\n  c/d,\n\te/f\nSigned-off-by: A", "a/b, c/d, e/f"},
		"blanks before the colon":            {"Sell\n\nFlotilla-Allow-Delete : a/b", "a/b"},
		"a line of blanks":                   {"Sell\n \t\nFlotilla-Allow-Delete: a/b", "a/b"},
		"what a squash adds":                 {"Sell\n\nIt is old.\n\nFlotilla-Allow-Delete: a/b\n\nCo-authored-by: A <a@b.example>\n\nSigned-off-by: A", "a/b"},
		"in the text":                        {"Sell\n\nFlotilla-Allow-Delete: a/b\n\nThe end.", "!a/b"},
		"in the text, above others":          {"Sell\n\nFlotilla-Allow-Delete: a/b\nis what I mean.\n\nCo-authored-by: A <a@b.example>", "!a/b"},
		"in the text, and where it counts":   {"Sell\n\nFlotilla-Allow-Delete: a/b\n\nThe end.\n\nFlotilla-Allow-Delete: a/b", "a/b"},
		"who forges the mark":                {"Sell\n\nFlotilla-Allow-Delete: !a/b", "a/b"},
		"what a terminal obeys":              {"Sell\n\nFlotilla-Allow-Delete: a/\x1b[2Jb", "a/ [2Jb"},
		"far too much":                       {"Sell\n\nFlotilla-Allow-Delete: a/b," + strings.Repeat("x", 4<<10), "a/b"},
		"a block of code comes last":         {"Sell\n\nTo let it go, write\n\n    Flotilla-Allow-Delete: a/b\n", "!a/b"},
		"a block of code with a tab":         {"Sell\n\n\tFlotilla-Allow-Delete: a/b\n", "!a/b"},
		"prose comes last":                   {"Sell\n\nDo not write\nFlotilla-Allow-Delete: a/b\nas it kills the shop.", "!a/b"},
		"a block of code beside trailers":    {"Sell\n\n    Flotilla-Allow-Delete: a/b\n\nSigned-off-by: A", "!a/b"},
		"much prose and a sign-off":          {"Sell\n\nOne.\nTwo.\nThree.\nFour.\nFive.\nSix.\nSeven.\nFlotilla-Allow-Delete: a/b\nSigned-off-by: A", "!a/b"},
		"a little prose and a sign-off":      {"Sell\n\nBye.\nFlotilla-Allow-Delete: a/b\nSigned-off-by: A", "a/b"},
		"the last paragraph has other words": {"Sell\n\nBye.\nFlotilla-Allow-Delete: a/b\n(cherry picked from commit 1)", "a/b"},
	} {
		if got := trailer.Allowed(tc.message); got != tc.want {
			t.Errorf("%s: it names %q, want %q", name, got, tc.want)
		}
	}
}

// FuzzAllowed: whatever the message is, what is named is bounded, in one line, and in the message.
func FuzzAllowed(f *testing.F) {
	f.Add("Sell\n\nFlotilla-Allow-Delete: a/b,\n c/d\n\nCo-authored-by: A")
	f.Add("Sell\r\n\r\nFlotilla-Allow-Delete: a/b")
	f.Fuzz(func(t *testing.T, message string) {
		got := trailer.Allowed(message)
		if len(got) > 4<<10 || strings.ContainsAny(got, "\n\r\x1b") {
			t.Errorf("%q", got)
		}
		if got != "" && !strings.Contains(strings.ToLower(message), "flotilla-allow-delete") {
			t.Errorf("%q of %q", got, message)
		}
	})
}
