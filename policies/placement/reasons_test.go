package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
)

// TestOfManyReasonsThoseThatAreNamedHold has clusters with more taints than a
// message names: it is written again when one that it names has gone, and not for
// every other.
func TestOfManyReasonsThoseThatAreNamedHold(t *testing.T) {
	clusters := func(taints ...string) placement.Snapshot {
		var out []*clusterv1alpha1.Cluster
		for i, key := range taints {
			out = append(out, cluster(fmt.Sprintf("c-%02d", i), 10, taint(key)))
		}
		return placement.NewSnapshot(out)
	}
	cases := map[string]struct {
		now     []string // taints of c-00, c-01 and so on
		written bool
	}{
		"nothing changes":                    {now: []string{"a", "b", "c", "d", "e", "f", "g"}},
		"one that is not named goes":         {now: []string{"a", "b", "c", "d", "e", "f", "f"}},
		"another comes that is not named":    {now: []string{"a", "b", "c", "d", "e", "f", "g", "h"}},
		"one comes that would be named":      {now: []string{"a", "b", "c", "d", "e", "f", "g", "A"}},
		"a named one is on more clusters":    {now: []string{"a", "b", "c", "d", "e", "f", "g", "c"}},
		"a named one goes":                   {now: []string{"h", "b", "c", "d", "e", "f", "g"}, written: true},
		"so many go that all can be named":   {now: []string{"a", "b", "c", "d", "e"}, written: true},
		"a named one goes with the last one": {now: []string{"b", "b", "c", "d", "e", "f", "f"}, written: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{Spec: *deployment(1, policyv1alpha1.Placement{})}
			b.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}
			decide := func(snap placement.Snapshot) bool {
				decision, changed := placement.Decide(b, placement.Situation{Clusters: snap, Now: time.Unix(0, 0)}, placement.Options{})
				if changed {
					decision.Put(b)
				}
				return changed
			}
			if !decide(clusters("a", "b", "c", "d", "e", "f", "g")) {
				t.Fatal("nothing was decided")
			}
			now := clusters(tc.now...)
			if written := decide(now); written != tc.written {
				t.Errorf("written again: %t, want %t", written, tc.written)
			}
			record, _ := placement.RecordOf(b)
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				if text := "{" + key + ":NoSchedule}"; strings.Contains(record.Message, text) && !strings.Contains(strings.Join(tc.now, ""), key) {
					t.Errorf("%q names %s, which no cluster has", record.Message, text)
				}
			}
			if decide(now) {
				t.Error("the same once more is news")
			}
		})
	}
}
