package statussize_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/statussize"
)

func template(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web"}}}
}

func addresses(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = map[string]any{"ip": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), "hostname": strings.Repeat("h", 40)}
	}
	return out
}

func TestShrink(t *testing.T) {
	pods := map[string]any{}
	for i := range 60_000 {
		pods[fmt.Sprintf("member-%05d/pod", i)] = "2026-01-01T00:00:00Z"
	}
	var containers, conditions []any
	for i := range 3000 {
		containers = append(containers, map[string]any{"name": fmt.Sprint(i), "ready": true, "state": map[string]any{"waiting": map[string]any{"message": strings.Repeat("m", 3000)}}})
	}
	for i := range 4 {
		conditions = append(conditions, map[string]any{"type": fmt.Sprint(i), "status": "True", "message": strings.Repeat("m", 1<<20)})
	}
	var deep any = "x"
	for range 9_000 {
		deep = map[string]any{"a": deep, "b": strings.Repeat("m", 500)}
	}
	cases := map[string]struct {
		status map[string]any
		left   string
		fits   bool
	}{
		"what is small":          {map[string]any{"replicas": int64(3)}, "", true},
		"what is large but fits": {map[string]any{"loadBalancer": map[string]any{"ingress": addresses(5000)}}, "", true},
		"too many addresses": {
			map[string]any{"loadBalancer": map[string]any{"ingress": addresses(70_000)}},
			"left out of the template's status, which is too large: all but 4096 of 70000 entries of loadBalancer.ingress", true,
		},
		"too many pods by name": {
			map[string]any{"expectedPods": int64(7), "disruptedPods": pods},
			"left out of the template's status, which is too large: all but 4096 of 60000 entries of disruptedPods", true,
		},
		"too many containers that say much": {
			map[string]any{"containerStatuses": containers},
			"left out of the template's status, which is too large: all but 512 of 3000 entries of containerStatuses, the ends of texts beyond 1024 bytes", true,
		},
		"few conditions that say too much": {
			map[string]any{"conditions": conditions}, "left out of the template's status, which is too large: the ends of texts beyond 1024 bytes", true,
		},
		"what has no lists to shorten": {
			map[string]any{"deep": deep}, "the template's status is too large to be written: there is room for ", false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(tc.status)
			if err != nil {
				t.Fatal(err)
			}
			got, left, ok := statussize.Shrink(template("X"), tc.status)
			after, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if ok != tc.fits || left != tc.left && (ok || !strings.HasPrefix(left, tc.left)) {
				t.Errorf("fits %t, left %q", ok, left)
			}
			if len(after) > 1<<20 || left == "" && string(before) != string(after) {
				t.Errorf("%d bytes of %d", len(after), len(before))
			}
			if now, err := json.Marshal(tc.status); err != nil || string(now) != string(before) {
				t.Error("the status that came in was changed")
			}
			again, more, _ := statussize.Shrink(template("X"), got)
			if diff := cmp.Diff(got, again); ok && (diff != "" || more != "") {
				t.Errorf("twice is not once: %s%s", more, diff)
			}
		})
	}
}
