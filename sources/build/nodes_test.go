package build_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/sources/build"
)

// dense returns a manifest that takes many times its size in memory when it is
// parsed: two YAML nodes a line.
func dense(name string, lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata:\n", name)
	for i := range lines {
		fmt.Fprintf(&b, " k%x: b\n", i)
	}
	return b.String()
}

// taken returns how many bytes a build allocates, and its error.
func taken(t *testing.T, source map[string]string) (uint64, error) {
	t.Helper()
	in := build.Input{Files: files(source)}
	builder := build.New(build.Limits{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := builder.Build(t.Context(), in)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestWhatIsReadIsBounded checks that the input of a build is bounded by the
// number of its YAML nodes, independently of its size in bytes and of how often a
// file is used.
func TestWhatIsReadIsBounded(t *testing.T) {
	one, err := taken(t, map[string]string{"a.yaml": dense("a", 150_000)})
	if err != nil {
		t.Fatal(err)
	}
	folder := map[string]string{}
	for i := range 12 {
		folder[fmt.Sprintf("%x.yaml", i)] = dense(fmt.Sprintf("c-%d", i), 150_000)
	}
	listed := map[string]string{"kustomization.yaml": "namePrefix: x-\nresources: [0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml, 5.yaml, 6.yaml, 7.yaml]\n"}
	for name, content := range folder {
		listed[name] = content
	}
	used := map[string]string{"kustomization.yaml": "resources: [o0, o1, o2, o3, o4, o5, o6, o7]\n", "a.yaml": dense("a", 150_000)}
	for i := range 8 {
		used[fmt.Sprintf("o%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: x%d-\nresources: [../a.yaml]\n", i)
	}
	patched := map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", "a.yaml": configMap("a"), "p.yaml": strings.Repeat("--- {kind: a, metadata: {name: b}, x: ["+strings.Repeat("[],", 300_000)+"]}\n", 4)}
	cases := map[string]struct {
		files map[string]string
		says  string
	}{
		"a folder":                      {files: folder, says: "3.yaml"},
		"files of a kustomization":      {files: listed, says: "3.yaml"},
		"one file that is used often":   {files: used, says: "a.yaml"},
		"patches that are many at once": {files: patched, says: "p.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bytes, err := taken(t, tc.files)
			if !errors.Is(err, build.ErrTooLarge) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "YAML nodes") {
				t.Errorf("error = %v, want one that says too large, YAML nodes and %s", err, tc.says)
			}
			if most := 6 * one; bytes > most {
				t.Errorf("allocates %d bytes, want %d at most", bytes, most)
			}
		})
	}
}
