package features_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
)

func TestRead(t *testing.T) {
	all := func(change func(*features.Gates)) features.Gates {
		g := features.Gates{
			Preemption: true, WorkloadAffinity: true, MultiplePodTemplates: true, OvercommitProtection: true,
			PriorityScheduling: true, ResourceModeling: true, QuotaEnforcement: true, PropagateDeps: true,
			GracefulEviction: true, StatefulFailover: true, QuotaEstimate: true, Kubernetes: map[string]bool{},
		}
		change(&g)
		return g
	}
	kubernetes := func(name string) bool { return name == "WatchList" || name == "AllAlpha" || name == "AllBeta" }
	cases := map[string]struct {
		set        map[string]bool
		kubernetes func(string) bool
		want       features.Gates
		err        string
	}{
		"nothing: what works is on": {want: all(func(*features.Gates) {})},
		"one off":                   {set: map[string]bool{"PropagationPolicyPreemption": false}, want: all(func(g *features.Gates) { g.Preemption = false })},
		"one of Kubernetes, where it has some": {
			set: map[string]bool{"WatchList": true}, kubernetes: kubernetes, want: all(func(g *features.Gates) { g.Kubernetes["WatchList"] = true }),
		},
		"one of Kubernetes, where it has none": {set: map[string]bool{"WatchList": true}, err: `there is no feature gate "WatchList": there are AllAlpha, AllBeta, `},
		"one that nobody knows":                {set: map[string]bool{"Teleport": true}, kubernetes: kubernetes, err: "and those of Kubernetes"},
		"all of a stage, of Karmada's alone": {
			set: map[string]bool{"AllAlpha": true, "AllBeta": false, "WorkloadAffinity": true}, kubernetes: kubernetes,
			want: features.Gates{WorkloadAffinity: true, Kubernetes: map[string]bool{}},
		},
		"what cannot be switched": {
			set: map[string]bool{"MultiClusterService": true, "ContextualLogging": false},
			want: all(func(g *features.Gates) {
				g.Idle = []features.Gate{
					{Name: "ContextualLogging", Default: true, Here: "what is logged says what it is about", Fixed: true},
					{Name: "MultiClusterService", Here: "until services across clusters are built", Fixed: true},
				}
			}),
		},
		"those of evictions, off": {
			set:  map[string]bool{"StatefulFailoverInjection": false, "GracefulEviction": false},
			want: all(func(g *features.Gates) { g.StatefulFailover, g.GracefulEviction = false, false }),
		},
		"one that is off by itself": {set: map[string]bool{"Failover": true}, want: all(func(g *features.Gates) { g.Failover = true })},
		"all that are beta":         {set: map[string]bool{"AllBeta": true}, want: all(func(g *features.Gates) { g.Failover = true })},
		"what is so anyway": {
			set:  map[string]bool{"GracefulEviction": true, "Failover": false, "ControllerPriorityQueue": true},
			want: all(func(*features.Gates) {}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := features.Read(tc.set, tc.kubernetes)
			if (err != nil) != (tc.err != "") || err != nil && (!strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n")) {
				t.Fatalf("error %v, want one line with %q", err, tc.err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKarmadasGatesAreKnown: manifests that set them go on working.
func TestKarmadasGatesAreKnown(t *testing.T) {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(`Failover GracefulEviction PropagateDeps CustomizedClusterResourceModeling
		PropagationPolicyPreemption MultiClusterService ResourceQuotaEstimate StatefulFailoverInjection PriorityBasedScheduling
		FederatedQuotaEnforcement MultiplePodTemplatesScheduling ControllerPriorityQueue WorkloadAffinity
		SchedulingOvercommitProtection LoggingAlphaOptions LoggingBetaOptions ContextualLogging AllAlpha AllBeta`) {
		set[name] = true
	}
	if _, err := features.Read(set, nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(len(set), len(features.Names())); diff != "" {
		t.Errorf("number of gates (-want +got):\n%s", diff)
	}
}

// TestEachGateIsExplained: the page about them leaves none open.
func TestEachGateIsExplained(t *testing.T) {
	for _, g := range features.All() {
		if g.Here == "" {
			t.Errorf("%s: nothing says what it switches", g.Name)
		}
	}
}
