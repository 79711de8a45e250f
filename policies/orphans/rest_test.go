package orphans_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/orphans"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

func claim(name string) orphans.Object {
	return orphans.Object{ID: orphans.ID{Kind: volumes.Kind(), NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}}
}

// TestRest: what is told elsewhere is neither counted nor named.
func TestRest(t *testing.T) {
	objects := func(names ...string) (out []orphans.Object) {
		for _, name := range names {
			if strings.HasPrefix(name, "pvc") {
				out = append(out, claim(name))
			} else {
				out = append(out, orphans.Object{ID: id(name)})
			}
		}
		return out
	}
	say := func(names ...string) string { return orphans.Message("east", objects(names...), orphans.KeptByPolicy) }
	for name, tc := range map[string]struct {
		message string
		without []string
		want    string
	}{
		"all of it":              {say("pvc1"), []string{"pvc1"}, ""},
		"nothing":                {say("pvc1"), nil, "1 object that no Work names: PersistentVolumeClaim shop/pvc1 (with its data)"},
		"one of two":             {say("pvc1", "a"), []string{"pvc1"}, "1 object that no Work names: ConfigMap shop/a"},
		"one of many":            {say("pvc1", "a", "b", "c", "d", "e", "f"), []string{"pvc1"}, "6 objects that no Work names: ConfigMap shop/a, ConfigMap shop/b, ConfigMap shop/c, ConfigMap shop/d and 2 more"},
		"all that are named":     {say("pvc1", "pvc2", "pvc3", "pvc4", "pvc5", "a", "b"), []string{"pvc1", "pvc2", "pvc3", "pvc4", "pvc5"}, "2 more objects that no Work names"},
		"what somebody wrote":    {"many; objects", []string{"pvc1"}, "many"},
		"more than there are":    {say("pvc1"), []string{"pvc1", "pvc2"}, ""},
		"a count without a name": {"x that no Work names: y", []string{"pvc1"}, "x that no Work names: y"},
	} {
		t.Run(name, func(t *testing.T) {
			var without []types.NamespacedName
			for _, o := range objects(tc.without...) {
				without = append(without, o.NamespacedName)
			}
			if got := orphans.Rest(tc.message, without); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// FuzzRest: a cluster's agent may write anything, and no text makes more of it.
func FuzzRest(f *testing.F) {
	f.Add("2 objects that no Work names: PersistentVolumeClaim shop/pvc1 (with its data), ConfigMap shop/a; x")
	f.Add("-1 that no Work names:  and ")
	f.Fuzz(func(t *testing.T, message string) {
		if got := orphans.Rest(message, []types.NamespacedName{{Namespace: "shop", Name: "pvc1"}}); len(got) > len(message)+len("9223372036854775807 more objects that no Work names") || strings.Contains(got, ";") {
			t.Errorf("%q becomes %q", message, got)
		}
	})
}
