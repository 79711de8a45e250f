package rollup_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/rollup"
)

func TestSource(t *testing.T) {
	const good, rolls, bad = rollup.StateSuccess, rollup.StatePending, rollup.StateFailure
	unchanged := func(count int) (out []rollup.Share) {
		for i := range count {
			out = append(out, rollup.Share{Name: fmt.Sprint("a", i), State: good, Description: "3/3 clusters ready", Unchanged: true, Ready: 3, Total: 3})
		}
		return out
	}
	web := rollup.Share{Name: "web", State: rolls, Description: "5/20 clusters ready: eu-3 waits for Deployment shop/web 2/5", Ready: 5, Total: 20}
	db := rollup.Share{Name: "db", State: rolls, Description: "7/20 clusters ready", Ready: 7, Total: 20}
	cases := map[string]struct {
		shares []rollup.Share
		want   rollup.Rollup
	}{
		"nobody applies it":          {nil, rollup.Rollup{State: good, Description: "nobody applies it"}},
		"a commit without an effect": {unchanged(2), rollup.Rollup{State: good, Description: "2 unchanged", Ready: 6, Total: 6}},
		"some of it rolls out": {append(unchanged(41), web, db), rollup.Rollup{
			State: rolls, Description: "41 unchanged, 2 roll out: 12/40; db: 7/20 clusters ready", Ready: 135, Total: 163,
		}},
		"all of it runs": {append(unchanged(2), rollup.Share{Name: "web", State: good, Description: "3/3 clusters ready", Ready: 3, Total: 3}), rollup.Rollup{
			State: good, Description: "2 unchanged, 1 ready", Ready: 9, Total: 9,
		}},
		"a claim stays where nobody asks for it": {append(unchanged(1), rollup.Share{Name: "web", State: good, Ready: 1, Total: 1,
			Description: rollup.Revision([]rollup.Part{{Object: "PersistentVolumeClaim shop/data", Clusters: []rollup.ClusterPart{{Name: "east"}}, Kept: []string{"west"}}}).Description,
		}), rollup.Rollup{
			State: good, Description: "1 unchanged, 1 ready; web: claim shop/data stays in west: flotilla prune --cluster west removes it", Ready: 4, Total: 4,
		}},
		"so, and something else rolls out": {[]rollup.Share{web, {Name: "a", State: good, Description: "3/3 clusters ready; claim shop/data stays in west: x", Ready: 3, Total: 3}}, rollup.Rollup{
			State: rolls, Description: "1 ready, 1 rolls out: 5/20; web: 5/20 clusters ready: eu-3 waits for Deployment shop/web 2/5", Ready: 8, Total: 23,
		}},
		"what one of many is to let go stands whole": {append(unchanged(1), rollup.Share{Name: "web", State: bad,
			Description: "PruneBlocked: this commit would remove 1 of 6 objects (Deployment shop/web) and more that is told…: Flotilla-Allow-Delete: deployment/shop/web",
		}), rollup.Rollup{
			State: bad, Description: "1 failed, 1 unchanged; web: PruneBlocked: this commit would remove 1 of 6 objects (Deployment sh… Flotilla-Allow-Delete: deployment/shop/web", Ready: 3, Total: 3,
		}},
		"there is but one": {[]rollup.Share{web}, rollup.Rollup{
			State: rolls, Description: "web: 5/20 clusters ready: eu-3 waits for Deployment shop/web 2/5", Ready: 5, Total: 20,
		}},
		"what failed is told first": {append(unchanged(1), web, rollup.Share{Name: "zoo", State: bad, Description: "BuildFailed: zoo/x.yaml: broken"}), rollup.Rollup{
			State: bad, Description: "1 failed, 1 unchanged, 1 rolls out: 5/20; zoo: BuildFailed: zoo/x.yaml: broken", Ready: 8, Total: 23,
		}},
		"what the commit leaves alone fails": {append(unchanged(1), rollup.Share{Name: "old", State: bad, Description: "west failed", Unchanged: true, Total: 1}), rollup.Rollup{
			State: bad, Description: "2 unchanged, of them 1 not ready; old: west failed", Ready: 3, Total: 4,
		}},
		"some have not tried it": {append(unchanged(1), rollup.Share{Name: "slow", State: good, Description: "3/3 clusters ready", Awaited: true, Ready: 3, Total: 3}), rollup.Rollup{
			State: rolls, Description: "1 unchanged, 1 to be tried", Ready: 6, Total: 6,
		}},
		"one is suspended": {append(unchanged(1), rollup.Share{Name: "off", State: bad, Description: "not applied", Suspended: true}), rollup.Rollup{
			State: good, Description: "1 unchanged, 1 suspended", Ready: 3, Total: 3,
		}},
		"all is suspended": {[]rollup.Share{{Name: "a", Suspended: true}, {Name: "b", Suspended: true}}, rollup.Rollup{State: bad, Description: "2 suspended"}},
		"some wait for what does not exist": {append(unchanged(1),
			rollup.Share{Name: "api", State: good, Description: "3/3 clusters ready", Unchanged: true, Ready: 3, Total: 3, Waits: "infrastructure"},
			rollup.Share{Name: "web", State: good, Description: "3/3 clusters ready", Awaited: true, Ready: 3, Total: 3, Waits: "infrastructure"},
		), rollup.Rollup{State: rolls, Description: "2 wait for infrastructure, which does not exist, 1 unchanged", Ready: 9, Total: 9}},
		"the only one waits for what does not exist": {[]rollup.Share{{Name: "web", State: good, Description: "3/3 clusters ready", Ready: 3, Total: 3, Waits: "base"}}, rollup.Rollup{
			State: rolls, Description: "1 waits for base, which does not exist", Ready: 3, Total: 3,
		}},
		"the name of what it waits for is nearly another's": {[]rollup.Share{{Name: "web", State: good, Description: "3/3 clusters ready", Ready: 3, Total: 3, Waits: "bse", Meant: "base"}}, rollup.Rollup{
			State: rolls, Description: "1 waits for bse, which does not exist (did you mean base?)", Ready: 3, Total: 3,
		}},
		"some wait for several that do not exist": {[]rollup.Share{{Name: "api", State: good, Unchanged: true, Waits: "base"}, {Name: "web", State: good, Unchanged: true, Waits: "crds"}}, rollup.Rollup{
			State: rolls, Description: "2 wait for base and 1 more, which do not exist",
		}},
		"one that waits for what does not exist has failed": {[]rollup.Share{{Name: "web", State: bad, Description: "west failed", Total: 1, Waits: "base"}}, rollup.Rollup{
			State: bad, Description: "web: west failed", Total: 1,
		}},
		"one is not judged yet": {append(unchanged(1), rollup.Share{Name: "new"}), rollup.Rollup{State: rolls, Description: "1 unchanged, 1 rolls out", Ready: 3, Total: 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				rand.Shuffle(len(tc.shares), func(i, j int) { tc.shares[i], tc.shares[j] = tc.shares[j], tc.shares[i] })
				if diff := cmp.Diff(tc.want, rollup.Source(tc.shares)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
