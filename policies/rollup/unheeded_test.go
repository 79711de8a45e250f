package rollup_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatIsNotTakenUp checks that a revision reports requests of policies that
// are not followed. It succeeds where a Lazy policy waits, and not where another
// policy keeps the template.
func TestWhatIsNotTakenUp(t *testing.T) {
	const by = "by PropagationPolicy shop/web before its next change, as that is Lazy"
	runs := rollup.Part{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{{Name: "east", State: rollup.Healthy}}}
	rolls := rollup.Part{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{{Name: "east", State: rollup.Progressing, Reason: "not ready 1/2"}}}
	waits := func(name string) rollup.Part {
		return rollup.Part{Object: "Deployment shop/" + name, Unheeded: by}
	}
	contested := func(name string) rollup.Part {
		return rollup.Part{Object: "Deployment shop/" + name, Unheeded: "by PropagationPolicy shop/new, as PropagationPolicy shop/old keeps it", Contested: true}
	}
	kept := rollup.Part{Object: "PersistentVolumeClaim shop/data", Kept: []string{"west"}}
	for name, tc := range map[string]struct {
		parts []rollup.Part
		want  string
	}{
		"one":                          {[]rollup.Part{runs, waits("web")}, "success 1/1 clusters ready; not taken up: Deployment shop/web " + by},
		"several":                      {[]rollup.Part{runs, waits("web"), waits("api")}, "success 1/1 clusters ready; not taken up: Deployment shop/api (and 1 more) " + by},
		"all that there is":            {[]rollup.Part{waits("web")}, "success applied; nothing goes to clusters; not taken up: Deployment shop/web " + by},
		"another policy keeps it":      {[]rollup.Part{runs, contested("web")}, "pending 1/1 clusters ready; not taken up: Deployment shop/web by PropagationPolicy shop/new, as PropagationPolicy shop/old keeps it"},
		"so, and one waits as well":    {[]rollup.Part{runs, waits("api"), contested("web")}, "pending 1/1 clusters ready; not taken up: Deployment shop/web (and 1 more) by PropagationPolicy shop/new, as PropagationPolicy shop/old keeps it"},
		"so, and a claim stays":        {[]rollup.Part{runs, kept, contested("web")}, "pending 1/1 clusters ready; not taken up: Deployment shop/web by PropagationPolicy shop/new, as PropagationPolicy shop/old keeps it"},
		"so, and it rolls out":         {[]rollup.Part{rolls, contested("web")}, "pending 0/1 clusters ready: east waits for Deployment shop/web 1/2"},
		"what is on its way is enough": {[]rollup.Part{rolls, waits("web")}, "pending 0/1 clusters ready: east waits for Deployment shop/web 1/2"},
		"a claim stays, too":           {[]rollup.Part{runs, waits("web"), kept}, "success 1/1 clusters ready; claim shop/data stays in west: flotilla prune --cluster west removes it; not taken up: Deployment shop/web by Propagati…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rollup.Revision(tc.parts)
			if text := got.State + " " + got.Description; text != tc.want {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}
