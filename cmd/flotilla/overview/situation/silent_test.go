package situation_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestALostClusterIsOneProblem: what waits to hear of it follows from it, and is counted as unknown; where the cluster
// itself is not shown, it is a problem of its own.
func TestALostClusterIsOneProblem(t *testing.T) {
	all := objects(t, "silent")
	f := survey(t, "", all)
	golden(t, "silent.txt", text(t, f, false))
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "silent.json", append(content, '\n'))

	want := []situation.Problem{
		{State: situation.Unknown, Kind: "Kustomization", Namespace: "shop", Name: "web", Message: "Applied revision main@sha1:11111111; health is not known: Deployment/shop/web: west: unreachable since 2026-03-05 09:25 UTC; last heard: healthy",
			Next: "see to the cluster that is silent (flotilla get clusters); this follows by itself. To go on without it: flotilla annotate kustomization web -n shop kustomize.flotilla.io/max-unreachable=1"},
	}
	for name, f := range map[string]situation.Fleet{
		"of one namespace":                survey(t, "shop", all),
		"to who may not read the cluster": survey(t, "", all[2:]),
	} {
		var got []situation.Problem
		for _, p := range f.Problems {
			if p.Kind == "Kustomization" {
				got = append(got, p)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || f.Ready {
			t.Errorf("%s: ready %t, problems (-want +got):\n%s", name, f.Ready, diff)
		}
	}
}
