package rollup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestAlongside checks that a Namespace, which is in every cluster, counts only
// where something else of its Kustomization goes.
func TestAlongside(t *testing.T) {
	part := func(object string, clusters ...string) rollup.Part {
		out := rollup.Part{Object: object}
		for _, name := range clusters {
			out.Clusters = append(out.Clusters, rollup.ClusterPart{Name: name})
		}
		return out
	}
	shop := part("Namespace shop", "east", "north", "west")
	for name, tc := range map[string]struct{ others, want []rollup.Part }{
		"nothing else goes anywhere":        {nil, []rollup.Part{shop}},
		"something goes to two of three":    {[]rollup.Part{part("Deployment shop/web", "east"), part("Deployment shop/db", "west")}, []rollup.Part{part("Namespace shop", "east", "west")}},
		"it goes where the Namespace isn't": {[]rollup.Part{part("Deployment shop/web", "south")}, nil},
		"what goes has no place yet":        {[]rollup.Part{part("Deployment shop/web")}, []rollup.Part{shop}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollup.Alongside([]rollup.Part{part("Namespace shop", "east", "north", "west")}, tc.others)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
