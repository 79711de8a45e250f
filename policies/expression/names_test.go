package expression

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// FuzzNames: what the language's own check knows all names of is read here, too, and
// what it does not know is refused. It is asked about short texts: it takes long for
// others, which is why it is not used.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"a", "b", "a.b", "b.a", "a.all(x, x)", "a.all(x, y)", "a.all(x, x) && x", "[1].map(i, i > 1, i + a)", "a.?b.optMap(v, v)", "a.optFlatMap(v, w)",
		"optional.of(a)", "optional.none()", "sets.contains(a, b)", "base64.encode(a)", "google.protobuf.Duration{seconds: 1}", "google.protobuf", "type(a) == list",
		"has(a.b)", "has(b.a)", ".a", ".b", "a[?0]", "{a: b}", "[?a]", "f(a)", "a.f()", "a.exists_one(a, a)", "int", "int(a)", "string.a", "a ? b : c", "-a", "!b", "in", "a in b",
		"cel.bind(x, a, x)", "@result", "__result__", "math.greatest(a)", "a.all(i, v, i == v)", "dyn(b)", "timestamp(a).getFullYear()",
	} {
		f.Add(seed)
	}
	c := NewCompiler(Limits{})
	l, err := c.made()
	if err != nil {
		f.Fatal(err)
	}
	// Without the comparison of literals, which panics for a list like [?a].
	whole, err := cel.NewEnv(cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), ext.Strings(), ext.Sets(), ext.Encoders(), cel.Variable("a", cel.DynType))
	if err != nil {
		f.Fatal(err)
	}
	const short = 60
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > short {
			return
		}
		_, err := c.Compile(t.Context(), text, nil, "a")
		if err != nil && !errors.Is(err, ErrInvalid) {
			t.Fatalf("%q: %v", text, err)
		}
		if _, issues := l.env.Parse(text); issues.Err() != nil {
			if err == nil {
				t.Errorf("%q is read, and is no expression: %v", text, issues.Err())
			}
			return
		}
		_, issues := whole.Compile(text)
		switch {
		case issues.Err() == nil && err != nil:
			t.Errorf("%q is refused: %v", text, err)
		case issues.Err() != nil && err == nil && strings.Contains(issues.Err().Error(), "undeclared reference"):
			t.Errorf("%q is read: %v", text, issues.Err())
		}
	})
}
