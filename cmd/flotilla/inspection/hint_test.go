package inspection

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func TestHints(t *testing.T) {
	gone := func(group, kind string) error {
		return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: kind}, "gone")
	}
	late := errors.New("timed out waiting for the condition")
	const everywhere = "what there is, on the control plane and in the clusters; -C names one to ask"
	cases := map[string]struct {
		server, namespace string
		err               error
		want              string
	}{
		"a workload that may be in clusters":       {fleet.Hub, "shop", gone("apps", "deployments"), `deployments.apps "gone" not found: flotilla get deployments.apps -n shop -s all lists ` + everywhere},
		"a node, which lies in none":               {"", "", gone("", "nodes"), `nodes "gone" not found: flotilla get nodes -s all lists ` + everywhere},
		"a kind that no cluster has":               {fleet.Hub, "", gone("cluster.karmada.io", "clusters"), `clusters.cluster.karmada.io "gone" not found: flotilla get clusters.cluster.karmada.io lists what there is`},
		"a kind of Flux's that no cluster has":     {fleet.Hub, "shop", gone("kustomize.toolkit.fluxcd.io", "kustomizations"), `kustomizations.kustomize.toolkit.fluxcd.io "gone" not found: flotilla get kustomizations.kustomize.toolkit.fluxcd.io -n shop lists what there is`},
		"a pod of a cluster":                       {"east", "shop", gone("", "pods"), `pods "gone" not found: flotilla get pods -n shop -C east lists what there is`},
		"a workload of a cluster that has no pod":  {"east", "shop", late, "no pod of it runs there, nor has begun to in time: flotilla get pods -n shop -C east lists what there is"},
		"a workload, where no namespace was named": {"east", "", late, "no pod of it runs there, nor has begun to in time: flotilla get pods -C east lists what there is"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := absentIn(tc.namespace, tc.server, tc.err); got == nil || got.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", got, tc.want)
			}
		})
	}
	if got := absentIn("shop", "east", errors.New("the disk is full")); got != nil {
		t.Errorf("another error is told as %v", got)
	}
}

// TestPlaces: of many clusters a few are named.
func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		servers []string
		want    string
	}{
		"two clusters":                       {[]string{"a", "b"}, "in any of 2 clusters (a, b)"},
		"as many as are named":               {[]string{"a", "b", "c", "d", "e"}, "in any of 5 clusters (a, b, c, d, e)"},
		"more than are named":                {[]string{"a", "b", "c", "d", "e", "f", "g"}, "in any of 7 clusters (a, b, c, d, e and 2 more)"},
		"the control plane and one cluster":  {[]string{fleet.Hub, "a"}, "on the control plane, nor in cluster a"},
		"the control plane and two clusters": {[]string{fleet.Hub, "a", "b"}, "on the control plane, nor in any of 2 clusters (a, b)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := places(tc.servers); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
