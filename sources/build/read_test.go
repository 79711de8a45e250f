package build_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/build"
)

func TestRead(t *testing.T) {
	docs, err := build.Read([]byte(`# two and a list
---
kind: A
spec:
  rules:
    - name: first
    - {name: second}
metadata:
  labels:
    a.b/c: d
---
# nothing
---
kind: List
items:
  - kind: B
  - kind: C
    x: 1
`), build.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	type place struct {
		Kind         any
		Number, Line int
	}
	var got []place
	for _, d := range docs {
		got = append(got, place{d.Fields["kind"], d.Number, d.Line})
	}
	if diff := cmp.Diff([]place{{"A", 1, 3}, {"B", 2, 16}, {"C", 2, 17}}, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	for path, want := range map[string]int{
		"": 3, "spec": 4, "spec.rules[1].name": 7, "spec.rules[0].name": 6, "spec.rules[0].missing": 6, "spec.rules[9]": 5,
		"metadata.labels[a.b/c]": 10, "metadata.name": 8, "[": 3, "spec..[": 4,
	} {
		if got := docs[0].LineOf(path); got != want {
			t.Errorf("LineOf(%q) = %d, want %d", path, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		want    error
	}{
		"a key that is there twice": {"a: 1\na: 2", build.ErrInvalid},
		"what is no YAML":           {"{{ .Values }}: [", build.ErrInvalid},
		"a list of nothing":         {"kind: List\nitems: 3", build.ErrInvalid},
		"what is nested too deep":   {strings.Repeat("[", 500) + strings.Repeat("]", 500), build.ErrTooLarge},
		"a document too long":       {"a: " + strings.Repeat("x", 4<<20), build.ErrTooLarge},
		"too many items":            {"kind: List\nitems: [" + strings.Repeat("{kind: A},", 10_001) + "]", build.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if docs, err := build.Read([]byte(tc.content), build.Limits{}); !errors.Is(err, tc.want) || docs != nil {
				t.Errorf("%d documents, error %v; want %v", len(docs), err, tc.want)
			}
		})
	}
}

// TestErrorsDoNotRepeatValues checks that errors, which appear in statuses and on
// commits, show no value of a Secret.
func TestErrorsDoNotRepeatValues(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  password: "
	for name, tc := range map[string]struct{ value, want string }{
		"a tag that does not fit":        {"!!int 31337pass", "line 5: the value is not what its tag !!int says"},
		"a float that is none":           {"!!float 31337pass", "line 5: the value is not what its tag !!float says"},
		"a password that seems an alias": {"*31337pass", "put it in quotes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build.Read([]byte(secret+tc.value), build.Limits{})
			switch {
			case !errors.Is(err, build.ErrInvalid):
				t.Fatalf("error %v, want %v", err, build.ErrInvalid)
			case strings.Contains(err.Error(), "31337"):
				t.Errorf("the error repeats the value: %v", err)
			case !strings.Contains(err.Error(), tc.want):
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
