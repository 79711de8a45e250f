package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestLimited: while a copy that has to go first is there, what is divided runs no more in all than is asked for; what is not is
// free to change where it runs.
func TestLimited(t *testing.T) {
	for name, tc := range map[string]struct {
		duplicated     bool
		runs, from, to string // clusters with replicas
		want           string // replicas in clusters that run it now, or more
		waits          []string
	}{
		"the one that stays takes over":              {runs: "a2 b2", from: "a", to: "b4", want: "b2", waits: []string{"b"}},
		"it is scaled up meanwhile":                  {runs: "a2 b2", from: "a", to: "b8", want: "b6", waits: []string{"b"}},
		"it is scaled up by as much as is to leave":  {runs: "a2 b2", from: "a", to: "b6", want: "b4", waits: []string{"b"}},
		"it is scaled down":                          {runs: "a2 b2", from: "a", to: "b1", want: "b1"},
		"it is scaled down to less than what leaves": {runs: "a4 b1", from: "a", to: "b3", want: "b1", waits: []string{"b"}},
		"two that stay share what may grow":          {runs: "a2 b1 c1", from: "a", to: "b4 c4", want: "b3 c3", waits: []string{"b", "c"}},
		"one takes over from the other as well":      {runs: "a2 b3 c1", from: "a", to: "b1 c5", want: "b1 c3", waits: []string{"c"}},
		"a new one starts later":                     {runs: "a2 b2", from: "a", to: "b2 c2", want: "b2 c2"},
		"a new one starts later, and it is scaled":   {runs: "a2 b2", from: "a", to: "b4 c4", want: "b4 c4"},
		"two leave":           {runs: "a2 b2 c2", from: "a b", to: "c6", want: "c2", waits: []string{"c"}},
		"each runs all of it": {duplicated: true, runs: "a2 b2", from: "a", to: "b5", want: "b5"},
		"it has left":         {runs: "b2", from: "a", to: "b4", want: "b4"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			spec := in.Binding.BindingSpec()
			in.Cluster = clusters("a", "b", "c")
			if !tc.duplicated {
				spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
			}
			spec.Clusters = targetsOf(t, tc.runs)
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			var works []*workv1alpha1.Work
			for _, p := range plans {
				works = append(works, p.Work)
			}
			for _, cluster := range strings.Fields(tc.from) {
				spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: cluster, PurgeMode: policyv1alpha1.PurgeModeDirectly})
			}
			spec.Clusters = targetsOf(t, tc.to)
			before := spec.DeepCopy()
			limited, waits := plan.Limited(in, works)
			got := map[string]int32{}
			for _, c := range limited.Binding.BindingSpec().Clusters {
				got[c.Name] = c.Replicas
			}
			var text []string
			for _, cluster := range slices.Sorted(maps.Keys(got)) {
				text = append(text, fmt.Sprint(cluster, got[cluster]))
			}
			if diff := cmp.Diff(tc.want, strings.Join(text, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, spec); diff != "" {
				t.Errorf("the binding was changed:\n%s", diff)
			}
		})
	}
}

func targetsOf(t *testing.T, text string) []workv1alpha2.TargetCluster {
	t.Helper()
	var out []workv1alpha2.TargetCluster
	for _, field := range strings.Fields(text) {
		n, err := strconv.ParseInt(field[1:], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, workv1alpha2.TargetCluster{Name: field[:1], Replicas: int32(n)})
	}
	return out
}
