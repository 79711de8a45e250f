package expression_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flotilla-io/flotilla/policies/expression"
)

// secret stands for what nobody may see who writes an expression.
const secret = "ey-a-token"

func object() map[string]any {
	items := make([]any, 3000)
	for n := range items {
		items[n] = map[string]any{"number": int64(n), "name": "item"}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "web", "generation": int64(2)},
		"status":   map[string]any{"phase": "Ready", "replicas": int64(3), "share": 0.5, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		"data":     map[string]any{"token": secret, "big": strings.Repeat("a", 1<<20), "items": items},
	}
}

func compiler(t *testing.T) *expression.Compiler {
	t.Helper()
	return expression.NewCompiler(expression.Limits{Time: time.Hour}) // a busy machine is no fault
}

func TestWhatExpressionsSay(t *testing.T) {
	cases := map[string]bool{
		"status.phase == 'Ready'":    true,
		"status.phase != 'Ready'":    false,
		"status.phase in ['Ready']":  true,
		"'token' in data":            true,
		"status.replicas >= 2.5":     true,
		"status.replicas + 1 == 4":   true,
		"1 == 1.0":                   true,
		"{'a': [1]} == {'a': [1.0]}": true,
		"status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')":                     true,
		"status.conditions.exists_one(e, e.type == 'Ready')":                                            true,
		"data.items.exists(i, i.number == 2999)":                                                        true,
		"data.items.map(i, i.number).size() == 3000":                                                    true,
		"has(status.observedGeneration) || metadata.generation == 2":                                    true,
		"has(status.observedGeneration) && status.observedGeneration == 1":                              false,
		"status.?observedGeneration.orValue(2) == metadata.generation":                                  true,
		"status.?phase.optMap(p, p + '!').orValue('') == 'Ready!'":                                      true,
		"status.phase.matches('^R.*y$') && status.phase.startsWith('Re')":                               true,
		"status.phase.lowerAscii().replace('r', 'l').split('').join('-') == 'l-e-a-d-y'":                true,
		"'%s has %d, %.1f'.format([status.phase, status.replicas, status.share]) == 'Ready has 3, 0.5'": true,
		"sets.contains([1, 2, 3], [2]) && sets.intersects([1], [1])":                                    true,
		"base64.encode(b'a') == 'YQ==' && size('äö') == 2 && string(1) == '1'":                          true,
		"timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026":                                       true,
		"duration('1h') > duration('59m')":                                                              true,
		"[1, 2] + [3] == [1, 2, 3] && [1, 2][1] == 2 && -1 < 0 && !false":                               true,
		"type(status.replicas) == int && dyn(1) == 1 && int('3') == 3":                                  true,
		"(status.replicas > 1 ? 'many' : 'few') == 'many'":                                              true,
		"status.missing == 1 || true":                                                                   true,
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			e, err := compiler(t).Compile(t.Context(), text, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Bool(t.Context(), object(), nil)
			if err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestCheckedExpressions(t *testing.T) {
	c := compiler(t)
	e, err := c.Compile(t.Context(), "event.name + '/' + provider.kind", nil, "event", "provider")
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Text(t.Context(), map[string]any{"event": map[string]any{"name": "web"}, "provider": map[string]any{"kind": "github"}}, nil)
	if err != nil || got != "web/github" {
		t.Errorf("got %q, %v", got, err)
	}
	for wrong, says := range map[string]string{
		"other.name":                                 "undeclared reference to 'other'",
		"event.name + other":                         "undeclared reference to 'other'",
		"event.items.all(i, j > 1)":                  "undeclared reference to 'j'",
		"event.items.all(i, i > 1) && i > 1":         "undeclared reference to 'i'",
		"event.?x.optMap(v, v) == v":                 "undeclared reference to 'v'",
		"[event, {'a': other}]":                      "undeclared reference to 'other'",
		"event.name.shout()":                         "undeclared reference to 'shout'",
		"shout(event)":                               "undeclared reference to 'shout'",
		"sets.shout(event)":                          "undeclared reference to 'sets'",
		"Boat{sails: 2} == event":                    "undeclared reference to 'Boat'",
		"google.protobuf.Nothing == event":           "undeclared reference to 'google'",
		"event.name == " + strings.Repeat("x", 5000): "undeclared reference to 'xxx",
		"event.":             "Syntax error",
		"":                   "Syntax error",
		"event.name ==\n  @": "(line 2, character ",
	} {
		if _, err := c.Compile(t.Context(), wrong, nil, "event"); !errors.Is(err, expression.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want one saying %q", wrong, err, says)
		}
	}
	for _, right := range []string{
		"event.items.map(i, i.name).exists(n, n == event.name)", "event.?x.optMap(v, v + 1).orValue(2) == 3", "sets.contains([1], [1])",
		"type(event) == map && int('1') == 1", "google.protobuf.Duration{seconds: 1} == duration('1s')", "optional.of(event).hasValue()", ".event.name == ''", "has(event.name)", "[?event.?name].size() == 1", "[?event]",
	} {
		if _, err := c.Compile(t.Context(), right, nil, "event"); err != nil {
			t.Errorf("%q: %v", right, err)
		}
	}
}

// TestReadingIsBounded: what reading an expression takes grows as its text does,
// whatever stands there. What it allocates stands for how long it takes.
func TestReadingIsBounded(t *testing.T) {
	fill := func(text string) string { return strings.Repeat(text, 9_990/len(text)) }
	nest := func(open, inner, close string, deep int) string {
		return strings.Repeat(open, deep) + inner + strings.Repeat(close, deep)
	}
	c := compiler(t)
	if _, err := c.Compile(t.Context(), "true", nil); err != nil { // makes the language
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lists in lists":              nest("[", "1", "]", 200),
		"maps in maps":                nest("{1: ", "1", "}", 200),
		"lists that are made of each": "[1]" + strings.Repeat(".map(a, [a, a])", 80),
		"maps that are made of each":  "[1]" + strings.Repeat(".map(a, {1: a})", 80),
		"a large list that doubles":   "optional.of([" + strings.Repeat("1,", 4_800) + "1])" + strings.Repeat(".optMap(a, a)", 6),
		"brackets":                    nest("(", "1", ")", 240),
		"brackets that stay open":     fill("("),
		"a long list":                 "[" + fill("1,") + "1]",
		"much to be joined":           fill("a || ") + "a",
		"questions":                   fill("a ? "),
		"no expression at all":        fill("@ "),
		"one word after the other":    fill("a b "),
		"a text without its end":      "'" + fill("a"),
		"a number without end":        fill("1"),
		"loops that nobody knows":     strings.Repeat("a.exists(x, x ? ", 80) + "1" + strings.Repeat(" : 2)", 80),
	} {
		for _, variables := range [][]string{nil, {"a"}} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := c.Compile(t.Context(), text, nil, variables...)
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text)); took > bytesPerByte {
				t.Errorf("%s, checked: %v: took %d bytes for each that was read, at most %d are good", name, variables != nil, took, bytesPerByte)
			}
			if err != nil && (!errors.Is(err, expression.ErrInvalid) || len(err.Error()) > 4*300 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: an error of %d characters: %.300s", name, len(err.Error()), err)
			}
		}
	}
}

// bytesPerByte is how much reading one byte of a text may allocate.
const bytesPerByte = 20_000

// TestReadingEnds: many expressions share what reading them may cost, and end with
// their run.
func TestReadingEnds(t *testing.T) {
	c, budget := compiler(t), expression.NewBudget(5_000_000)
	text := "'" + strings.Repeat("a", 9_000) + "' == 'b'"
	var err error
	read := 0
	for err == nil {
		if _, err = c.Compile(t.Context(), text, budget); err == nil {
			read++
		}
	}
	if !errors.Is(err, expression.ErrCost) || read != 11 {
		t.Errorf("%d were read, then %v", read, err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it was deleted")
	cancel(why)
	if _, err := c.Compile(ended, "true", nil); !errors.Is(err, why) {
		t.Errorf("after its run: %v", err)
	}
}

// loops nests n loops over a list of the object.
func loops(n int) string {
	text := "true"
	for range n {
		text = "data.items.all(x, " + text + ")"
	}
	return text
}

// doubled is a list in which the same list stands twice, n times over.
func doubled(n int, then string) string {
	return "[[0]]" + strings.Repeat(".map(a, [a, a])", n) + then
}

func TestLimits(t *testing.T) {
	cases := map[string]struct {
		text string
		want error
	}{
		"loops within loops":                 {loops(5), expression.ErrCost},
		"a text that doubles":                {"['aaaaaaaa']" + strings.Repeat(".map(a, a + a)", 50) + "[0] == 'b'", expression.ErrCost},
		"a list that doubles":                {"[[1]]" + strings.Repeat(".map(a, a + a)", 50) + ".all(a, a.all(b, b == 1))", expression.ErrCost},
		"a list in itself, compared":         {doubled(60, ".map(a, a == a)[0]"), expression.ErrCost},
		"a list in itself, compared not":     {doubled(60, ".map(a, a != a)[0]"), expression.ErrCost},
		"a list in itself, looked up":        {doubled(60, ".map(a, a in [a])[0]"), expression.ErrCost},
		"a list in itself, as a set":         {doubled(60, ".map(a, sets.contains(a, a))[0]"), expression.ErrCost},
		"a list in itself, written":          {doubled(60, ".map(a, '%s'.format([a]))[0] == 'x'"), expression.ErrCost},
		"an optional list in itself":         {doubled(60, ".map(a, optional.of(a) == optional.of(a))[0]"), expression.ErrCost},
		"everything replaced by much":        {"data.big.replace('', data.big) == 'x'", expression.ErrCost},
		"much joined":                        {"data.items.map(i, data.big).join() == 'x'", expression.ErrCost},
		"little joined by much":              {"data.items.map(i, '').join(data.big) == 'x'", expression.ErrCost},
		"a text searched for a text":         {"data.big.indexOf(data.big + 'b') == 1", expression.ErrCost},
		"a large pattern":                    {"data.big.matches(data.big)", expression.ErrCost},
		"sets of many":                       {"sets.contains(data.items, data.items)", expression.ErrCost},
		"a large text, read again and again": {"data.items.all(i, data.big.charAt(i.number) == 'a')", expression.ErrCost},
		"a large number, read again":         {"data.items.all(i, int(data.big.replace('a', '1')) > 0)", expression.ErrCost},
		"more digits than anybody reads":     {"'%.1000000000f'.format([1.0]) == 'x'", expression.ErrFailed},
		"too long to be read":                {"'" + strings.Repeat("a", 10_000) + "' == 'b'", expression.ErrInvalid},
		"nested too deep":                    {strings.Repeat("(", 4000) + "1" + strings.Repeat(")", 4000) + " == 1", expression.ErrInvalid},
		"options that double when read":      {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 40) + ".hasValue()", expression.ErrInvalid},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := compiler(t).Compile(t.Context(), tc.text, nil)
			if err == nil {
				_, err = e.Bool(t.Context(), object(), nil)
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
		})
	}
}

// TestBudget: several evaluations share what they may cost.
func TestBudget(t *testing.T) {
	e, err := compiler(t).Compile(t.Context(), loops(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	budget := expression.NewBudget(40_000)
	ran := 0
	for err == nil {
		if _, err = e.Bool(t.Context(), object(), budget); err == nil {
			ran++
		}
	}
	if !errors.Is(err, expression.ErrCost) || ran == 0 || ran > 10 {
		t.Errorf("%d evaluations, then %v", ran, err)
	}
}

// TestEnd: an evaluation ends with its context, and at its own time.
func TestEnd(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it was deleted")
	cancel(why)
	cases := map[string]struct {
		ctx    context.Context
		limits expression.Limits
		want   error
	}{
		"its context has ended": {ended, expression.Limits{Cost: 1 << 62}, why},
		"its time is over":      {t.Context(), expression.Limits{Cost: 1 << 62, Time: time.Nanosecond}, expression.ErrTime},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, err := expression.NewCompiler(tc.limits).Compile(t.Context(), loops(8), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Bool(tc.ctx, object(), nil)
			if diff := cmp.Diff(tc.want, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestErrorsHoldNoValues: whatever an expression does with a value, its error does
// not say it.
func TestErrorsHoldNoValues(t *testing.T) {
	for text, want := range map[string]string{
		"data.token":                                      "it says neither true nor false",
		"int(data.token) == 1":                            "what it does cannot be done",
		"data[data.token] == 1":                           "a field that it uses is not there",
		"{'a': 1}[data.token] == 1":                       "a field that it uses is not there",
		"duration(data.token) > duration('1s')":           "what it does cannot be done",
		"timestamp(data.token) == null":                   "what it does cannot be done",
		"data.token + 1 == ''":                            "what it does cannot be done",
		"'a'.matches('(' + data.token) == true":           "what it does cannot be done",
		"base64.decode(data.token + '*') == b''":          "what it does cannot be done",
		"data.token.format([1]) == data.token.charAt(99)": "what it does cannot be done",
		"status.missing == 1":                             "there is no missing",
		"statu.phase == 'Ready'":                          "there is no statu.phase",
		"[1][5] == 1":                                     "what it does cannot be done",
	} {
		t.Run(text, func(t *testing.T) {
			e, err := compiler(t).Compile(t.Context(), text, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = e.Bool(t.Context(), object(), nil)
			if !errors.Is(err, expression.ErrFailed) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
				t.Errorf("error = %v, want one with %q and without %s", err, want, secret)
			}
		})
	}
}

// FuzzExpression: no text makes it panic, go on for ever, take more than its length
// lets it, or say a value.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"status.phase == 'Ready'", loops(3), doubled(20, ".map(a, a == a)[0]"), "int(data.token) == 1", "data.?x.optMap(a, a).hasValue()",
		"data.big.replace('', data.token) == ''", "'%s'.format([data])", "sets.contains(data.items, [1])", "[1].map(a, [a].map(b, b + a))[0] == [2]",
	} {
		f.Add(seed)
	}
	c, seen := expression.NewCompiler(expression.Limits{Cost: 100_000, Time: time.Second}), object()
	if _, err := c.Compile(f.Context(), "true", nil); err != nil { // makes the language
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e, err := c.Compile(t.Context(), text, nil)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20+bytesPerByte*uint64(len(text)) {
			t.Errorf("reading %d bytes took %d", len(text), took)
		}
		if err != nil {
			if !errors.Is(err, expression.ErrInvalid) || len(err.Error()) > 4*300 || strings.ContainsAny(err.Error(), "\n\r\t") {
				t.Errorf("%q is refused by %q", text, err)
			}
			return
		}
		if _, err = e.Bool(t.Context(), seen, nil); err != nil && strings.Contains(err.Error(), secret) && !strings.Contains(text, secret) {
			t.Errorf("%q says a value: %v", text, err)
		}
	})
}
