package siblings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
)

// TestSharedError: the error names the objects, up to a number, and the Kustomizations that hold them.
func TestSharedError(t *testing.T) {
	shared := func(with string, names ...string) (out []siblings.Shared) {
		for _, e := range configs(names...) {
			out = append(out, siblings.Shared{ID: e.ID, With: key(with)})
		}
		return out
	}
	const last = "; until then revision 2 is not applied here"
	for name, tc := range map[string]struct {
		shared []siblings.Shared
		within string
		want   string
		names  map[string]bool
	}{
		"one": {
			shared: shared("b", "x"), names: map[string]bool{"x": true, "y": false},
			want: "ConfigMap/team/x stands in Kustomization team/b and in team/a: remove it from one of them" + last,
		},
		"two of one": {
			shared: shared("b", "y", "x"), names: map[string]bool{"x": true, "y": true},
			want: "ConfigMap/team/x stands in Kustomization team/b and in team/a, and so does ConfigMap/team/y: remove each from one of the Kustomizations" + last,
		},
		"one that two others hold": {
			shared: append(shared("c", "x"), shared("b", "x")...),
			want:   "ConfigMap/team/x stands in Kustomization team/b and in team/a: remove it from one of them" + last,
		},
		"many, of several": {
			shared: append(shared("c", "p", "t"), shared("b", "q", "r", "s", "u", "v")...), names: map[string]bool{"p": true, "t": true, "v": false},
			want: "ConfigMap/team/p stands in Kustomization team/c and in team/a, and so do ConfigMap/team/q (in Kustomization team/b), ConfigMap/team/r (in Kustomization team/b), " +
				"ConfigMap/team/s (in Kustomization team/b), ConfigMap/team/t and 2 more: remove each from one of the Kustomizations" + last,
		},
		"of a namespace that nobody may know of": {
			shared: shared("b", "x"), within: "other",
			want: "ConfigMap/team/x stands in Kustomization of another namespace and in team/a: remove it from one of them" + last,
		},
	} {
		got := siblings.SharedError(tc.shared, key("a"), tc.within, "2").Error()
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for object, want := range tc.names {
			if siblings.Names(got, configs(object)[0].ID) != want {
				t.Errorf("%s: it names %s: %t", name, object, !want)
			}
		}
	}
}
