package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestSetOf(t *testing.T) {
	cases := map[string]struct{ fields, want string }{
		"nothing":                            {`{}`, `{}`},
		"fields":                             {`{"f:a":{},"f:b":{"f:c":{}}}`, `{"f:a":{},"f:b":{"f:c":{}}}`},
		"a parent itself":                    {`{"f:b":{".":{},"f:c":{}}}`, `{"f:b":{".":{},"f:c":{}}}`},
		"a parent and nothing of it":         {`{"f:b":{".":{}}}`, `{"f:b":{}}`},
		"items, in their order":              {`{"k:{\"p\":10}":{},"k:{\"p\":9}":{},"v:1":{},"i:2":{}}`, `{"k:{\"p\":9}":{},"k:{\"p\":10}":{},"v:1":{},"i:2":{}}`},
		"one item of several names":          {`{"k:{\"a\":1,\"b\":2}":{"f:x":{}},"k:{\"b\": 2,\"a\":1}":{".":{},"f:y":{}}}`, `{"k:{\"a\":1,\"b\":2}":{".":{},"f:x":{},"f:y":{}}}`},
		"what is no path element":            {`{"f:a":{},"q:z":{},"f":{},"v:[":{},"i:x":{},".":{}}`, `{"f:a":{}}`},
		"what is below no path element":      {`{"f:a":{"q:z":{}}}`, `{"f:a":{}}`},
		"what is no field set":               {`{"f:a":7,"f:b":null,"f:c":["x"]}`, `{"f:a":{},"f:b":{},"f:c":{}}`},
		"one that ends and one that goes on": {`{"v:1":{"f:x":{}},"v: 1":{}}`, `{"v:1":{".":{},"f:x":{}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(tc.fields), &fields); err != nil {
				t.Fatal(err)
			}
			got, err := setOf(fields)
			if err != nil {
				t.Fatal(err)
			}
			text, err := encode(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(text)); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSetOfTooDeep: what is deeper than any object of a server's is not read.
func TestSetOfTooDeep(t *testing.T) {
	fields := map[string]any{}
	for range deepest + 1 {
		fields = map[string]any{"f:a": fields}
	}
	if _, err := setOf(fields["f:a"].(map[string]any)); err != nil {
		t.Errorf("%d deep: %v", deepest, err)
	}
	if _, err := setOf(fields); !errors.Is(err, errIntricate) {
		t.Errorf("%d deep: %v, want %v", deepest+1, err, errIntricate)
	}
}

// TestSetOfAsServers: what servers write is read as they read it, and what several
// sets name is what they say.
func TestSetOfAsServers(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		var sets []*fieldpath.Set
		want := &fieldpath.Set{}
		for range random.IntN(6) {
			fields := someFields(random, 3)
			data, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			theirs := &fieldpath.Set{}
			if err := theirs.FromJSON(bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			got, err := setOf(fields)
			if err != nil || !got.Equals(theirs) {
				t.Fatalf("%s is read as\n%s\nwant\n%s\n%v", data, got, theirs, err)
			}
			sets, want = append(sets, got), want.Union(theirs)
		}
		if got := union(sets); !got.Equals(want) {
			t.Fatalf("union is\n%s\nwant\n%s", got, want)
		}
	}
}

// someFields returns a field set as servers write them.
func someFields(random *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range random.IntN(5) * min(depth, 1) {
		n := random.IntN(12)
		element := []string{
			fmt.Sprintf("f:%d", n), fmt.Sprintf(`k:{"name":"%d"}`, n), fmt.Sprintf(`k:{"port":%d,"protocol":"TCP"}`, n),
			fmt.Sprintf("v:%d", n), fmt.Sprintf(`v:"%d"`, n), fmt.Sprintf("i:%d", n),
		}[random.IntN(6)]
		below := someFields(random, depth-1)
		if random.IntN(2) == 0 && len(below) > 0 {
			below["."] = map[string]any{}
		}
		out[element] = below
	}
	return out
}
