package pattern_test

import (
	"errors"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/policies/pattern"
)

func TestCompile(t *testing.T) {
	for name, tc := range map[string]struct {
		text, matches, not string
		want               error
	}{
		"an ordinary one":                 {text: "^main-(?P<when>[0-9]{4,12})$", matches: "main-20261201", not: "main-1"},
		"the empty one":                   {matches: "anything"},
		"many words":                      {text: strings.Repeat("word|", 100) + "last", matches: "last", not: "lost"},
		"not closed":                      {text: "(", want: pattern.ErrInvalid},
		"a look behind":                   {text: "(?<=a)b", want: pattern.ErrInvalid},
		"repeated more often than Go may": {text: "a{1001}", want: pattern.ErrTooLarge},
		"repeated often":                  {text: "(" + strings.Repeat("ab", 1640) + "){1000}", want: pattern.ErrTooLarge},
		"repeated within a repeat":        {text: "((a{100}){100}){100}", want: pattern.ErrTooLarge},
		"repeated without an end":         {text: "(a{1000,}b){2}", want: pattern.ErrTooLarge},
		"nested deeper than Go may":       {text: strings.Repeat("(", 1500) + strings.Repeat(")", 1500), want: pattern.ErrTooLarge},
		"a long text":                     {text: strings.Repeat("a", 20_000), want: pattern.ErrTooLarge},
		"sets of all characters":          {text: strings.Repeat(`[\pL\pN]`, 50), want: pattern.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pattern.Compile(tc.text)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if err == nil && (!got.MatchString(tc.matches) || tc.not != "" && got.MatchString(tc.not)) {
				t.Errorf("%s matches %q: %t, and %q: %t", got, tc.matches, got.MatchString(tc.matches), tc.not, got.MatchString(tc.not))
			}
		})
	}
}

func TestTogetherTheyAreBoundedToo(t *testing.T) {
	var fields, texts []string
	for range 12 {
		fields, texts = append(fields, "spec.it"), append(texts, "a{600}")
	}
	if _, err := pattern.CompileAll(fields, texts); !errors.Is(err, pattern.ErrTooLarge) || !strings.HasPrefix(err.Error(), "spec.it is ") {
		t.Errorf("twelve large ones: %v", err)
	}
	if got, err := pattern.CompileAll(fields[:9], texts[:9]); err != nil || len(got) != 9 {
		t.Errorf("nine large ones: %d, %v", len(got), err)
	}
}

// FuzzCompile: what is compiled is what Go makes of it, and takes little.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{"", "a", "(a|b)*", "a{1000}", "(a{1000}){1000}", `[\pL]{100}`, "(?i)straße", "("} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := pattern.Compile(text)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%q takes %d bytes", text, took)
		}
		if err != nil {
			return
		}
		if want, err := regexp.Compile(text); err != nil || want.String() != got.String() {
			t.Errorf("Go makes %v of it, %v", want, err)
		}
	})
}
