package ownership

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLongLists: a long list is searched to the same end as its items one by one.
func TestLongLists(t *testing.T) {
	values := []any{int64(1), 1.0, int64(0), 0.0, "1", "a", true, nil, []any{"a"}, map[string]any{}}
	texts := []string{`{}`, `{"name":"a"}`, `{"name":1}`, `{"name":1.0}`, `{"name":null}`, `{"port":1,"name":"a"}`, `{"x":[]}`, `1`, `1.0`, `"a"`, `null`, `["a"]`, `{"name":"a"`}
	found := 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		value := func() any { return values[random.IntN(len(values))] }
		object := func() any {
			out := map[string]any{}
			for _, field := range []string{"name", "port", "x"} {
				if random.IntN(2) == 0 {
					out[field] = value()
				}
			}
			return out
		}
		var items []any
		for range short + 1 + random.IntN(short) {
			if random.IntN(4) == 0 {
				items = append(items, value())
			} else {
				items = append(items, object())
			}
		}
		long := &reader{}
		check := func(what string, search func(r *reader, items []any) (any, bool, error)) {
			t.Helper()
			var want []any
			for i := 0; i < len(items) && want == nil; i++ {
				if item, ok, _ := search(&reader{}, items[i:i+1]); ok {
					want = []any{item}
					found++
				}
			}
			var got []any
			if item, ok, _ := search(long, items); ok {
				got = []any{item}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s in %v (-one by one +indexed):\n%s", what, items, diff)
			}
		}
		for _, text := range texts {
			check(text, func(r *reader, items []any) (any, bool, error) { return r.find(text, items) })
		}
		for _, keys := range []map[string]any{nil, {"name": nil}, {"name": nil, "port": nil}} {
			for _, item := range []any{object(), object(), value()} {
				check(fmt.Sprint(keys, item), func(r *reader, items []any) (any, bool, error) { return r.counterpart(keys, item, items) })
			}
		}
	}
	if found < 1000 {
		t.Errorf("found %d items", found)
	}
}
