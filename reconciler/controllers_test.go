package reconciler

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestControllersAreChosen(t *testing.T) {
	but := func(without ...string) []string {
		without = append(without, Descheduler)
		return slices.DeleteFunc(Names(), func(name string) bool { return slices.Contains(without, name) })
	}
	for name, tc := range map[string]struct {
		list string
		want []string
		err  string
	}{
		"nothing is all":                    {"", but(), ""},
		"all":                               {"*", but(), ""},
		"what must be asked for":            {"*,descheduler", Names(), ""},
		"none":                              {"-*", nil, ""},
		"one of ours is left out":           {"*,-commitstatus", but("commitstatus"), ""},
		"a name holds before the star, too": {"-commitstatus,*", but("commitstatus"), ""},
		"one alone":                         {"template", []string{"template"}, ""},
		"one of Karmada's is left out":      {"*,-workloadRebalancer", but("rebalance"), ""},
		"one of Karmada's alone":            {"bindingStatus", []string{"status"}, ""},
		"both parts of a loop are left out": {"*,-federatedResourceQuotaStatus,-federatedResourceQuotaEnforcement", but("quota"), ""},
		"a loop and its part are left out":  {"*,-cluster,-clusterStatus", but("cluster"), ""},
		"the part of a loop that is named brings it whole": {"workStatus", []string{"execution"}, ""},
		"what Karmada has off is asked for":                {"*,hpaScaleTargetMarker,deploymentReplicasSyncer", but(), ""},
		"what is not there yet is left out":                {"*,-endpointSlice", but(), ""},
		"a part alone cannot be left out":                  {"*,-clusterStatus", nil, "clusterStatus is a part of the loop cluster here, which runs as a whole or not at all: name cluster"},
		"one of two parts cannot be left out":              {"*,-federatedResourceQuotaStatus", nil, "federatedResourceQuotaStatus is a part of the loop quota"},
		"a part cannot run without its loop":               {"*,-binding,gracefulEviction", nil, "gracefulEviction is a part of the loop binding"},
		"a name that nobody has":                           {"*,-teleport", nil, `there is no controller "teleport": there are gitrepository, `},
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			if tc.list != "" {
				list = strings.Split(tc.list, ",")
			}
			chosen, err := choose(list)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err != nil {
				return
			}
			var got []string
			for _, l := range Names() {
				if chosen[l] {
					got = append(got, l)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("loops (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKarmadasControllers holds the map: 27 names, each does something or says what is
// missing, and what does it is there.
func TestKarmadasControllers(t *testing.T) {
	want := strings.Fields(`agentcsrapproving applicationFailover binding bindingStatus cluster clusterStatus
		clustertaintpolicy cronFederatedHorizontalPodAutoscaler deploymentReplicasSyncer endpointSlice
		endpointsliceCollect endpointsliceDispatch execution federatedHorizontalPodAutoscaler
		federatedResourceQuotaEnforcement federatedResourceQuotaStatus federatedResourceQuotaSync
		gracefulEviction hpaScaleTargetMarker multiclusterservice namespace remedy serviceExport
		serviceImport unifiedAuth workStatus workloadRebalancer`)
	var got []string
	for _, c := range Controllers() {
		got = append(got, c.Name)
		if (c.Loop == "") == (c.Missing == "") {
			t.Errorf("%s: one of loop %q and missing %q must be said", c.Name, c.Loop, c.Missing)
		}
		if c.Loop != "" && !slices.Contains(Names(), c.Loop) {
			t.Errorf("%s: there is no loop %q", c.Name, c.Loop)
		}
		if slices.Contains(Names(), c.Name) && c.Loop != c.Name {
			t.Errorf("%s is the name of a loop, and of a controller that another one is", c.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	absent := Absent([]string{"*", "hpaScaleTargetMarker", "-endpointSlice", "bindingStatus"})
	if diff := cmp.Diff([]Controller{{Name: "hpaScaleTargetMarker", Missing: noAutoscaling}}, absent); diff != "" {
		t.Errorf("absent (-want +got):\n%s", diff)
	}
}
