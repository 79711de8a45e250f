package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Controller is a controller of Karmada's, by the name that --controllers has there.
type Controller struct {
	Name string
	// Loop does its work here; empty: nothing does yet, and Missing says what.
	Loop string
	// Missing is what is not there yet; empty: nothing is missing.
	Missing string
}

// What controllers of Karmada's wait for.
const (
	noServices    = "services across clusters"
	noAutoscaling = "autoscaling"
)

// karmada are the controllers of Karmada's controller manager. Where one has the name
// of a loop, it is that loop.
var karmada = []Controller{
	{Name: "agentcsrapproving", Loop: "agentcsrapproving"},
	{Name: "applicationFailover", Loop: "scheduler"},
	{Name: "binding", Loop: "binding"},
	{Name: "bindingStatus", Loop: "status"},
	{Name: "cluster", Loop: "cluster"},
	{Name: "clusterStatus", Loop: "cluster"},
	{Name: "clustertaintpolicy", Loop: "taintpolicy"},
	{Name: "cronFederatedHorizontalPodAutoscaler", Missing: noAutoscaling},
	{Name: "deploymentReplicasSyncer", Missing: noAutoscaling},
	{Name: "endpointSlice", Missing: noServices},
	{Name: "endpointsliceCollect", Missing: noServices},
	{Name: "endpointsliceDispatch", Missing: noServices},
	{Name: "execution", Loop: "execution"},
	{Name: "federatedHorizontalPodAutoscaler", Missing: noAutoscaling},
	{Name: "federatedResourceQuotaEnforcement", Loop: "quota"},
	{Name: "federatedResourceQuotaStatus", Loop: "quota"},
	{Name: "federatedResourceQuotaSync", Loop: "quotashare"},
	{Name: "gracefulEviction", Loop: "binding"},
	{Name: "hpaScaleTargetMarker", Missing: noAutoscaling},
	{Name: "multiclusterservice", Missing: noServices},
	{Name: "namespace", Loop: "namespace"},
	{Name: "remedy", Loop: "remedy"},
	{Name: "serviceExport", Missing: noServices},
	{Name: "serviceImport", Missing: noServices},
	{Name: "unifiedAuth", Loop: "unifiedauth"},
	{Name: "workStatus", Loop: "execution"},
	{Name: "workloadRebalancer", Loop: "rebalance"},
}

// Controllers lists the controllers of Karmada's, sorted by name.
func Controllers() []Controller { return slices.Clone(karmada) }

// Names lists the loops.
func Names() []string {
	names := make([]string, 0, len(loops))
	for _, l := range loops {
		names = append(names, l.name)
	}
	return names
}

// Check errs if a list of controllers names one that is none, or takes from a loop a
// part of what it does.
func Check(controllers []string) error {
	_, err := choose(controllers)
	return err
}

// Any reports whether a choice of loops leaves one to run. One that Check refuses has none.
func Any(controllers []string) bool {
	chosen, err := choose(controllers)
	return err == nil && slices.ContainsFunc(loops, func(l loop) bool { return chosen[l.name] })
}

// Absent lists what a choice asks for by name although nothing does it yet.
func Absent(controllers []string) []Controller {
	wants := wishes(controllers)
	return slices.DeleteFunc(Controllers(), func(c Controller) bool { return c.Missing == "" || !wants[c.Name] })
}

// wishes are the names of a list, and whether they are wanted. A name holds wherever it
// stands beside "*", which is for all others; of two about one name, the last counts.
func wishes(list []string) map[string]bool {
	wants := map[string]bool{}
	for _, entry := range list {
		name, without := strings.CutPrefix(strings.TrimSpace(entry), "-")
		wants[name] = !without
	}
	return wants
}

// Descheduler is the loop that moves what finds no node. "*" leaves it out: as with Karmada,
// where it is a program of its own, it runs where it is asked for.
const Descheduler = "descheduler"

// choose reads a list such as "*,-commitstatus". Empty means all that need not be asked for.
func choose(list []string) (map[string]bool, error) {
	if len(list) == 0 {
		list = []string{"*"}
	}
	wants := wishes(list)
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if name != "*" && !slices.Contains(Names(), name) && !slices.ContainsFunc(karmada, func(c Controller) bool { return c.Name == name }) {
			return nil, fmt.Errorf("there is no controller %q: there are %s, and Karmada's names", name, strings.Join(Names(), ", "))
		}
	}
	chosen := map[string]bool{}
	for _, name := range Names() {
		chosen[name] = runs(name, wants)
	}
	return chosen, whole(wants, chosen)
}

// runs reports whether a loop is wanted: by its own name, else by one of the controllers
// of Karmada's whose work it does.
func runs(name string, wants map[string]bool) bool {
	if wanted, named := wants[name]; named {
		return wanted
	}
	parts, wantedOne := 0, false
	for _, c := range karmada {
		if c.Loop != name {
			continue
		}
		wanted, named := wants[c.Name]
		parts, wantedOne = parts+1, wantedOne || wanted || !named && wants["*"]
	}
	return wantedOne || parts == 0 && wants["*"] && name != Descheduler
}

// whole errs if a part of a loop is named and the loop does otherwise: loops run as a
// whole, or not at all.
func whole(wants, chosen map[string]bool) error {
	for _, c := range karmada {
		if c.Loop == "" {
			continue
		}
		if wanted, named := wants[c.Name]; named && wanted != chosen[c.Loop] {
			return fmt.Errorf("%s is a part of the loop %s here, which runs as a whole or not at all: name %s", c.Name, c.Loop, c.Loop)
		}
	}
	return nil
}
