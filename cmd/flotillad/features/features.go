package features

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
)

// Names of gates, which are Karmada's.
const (
	// Preemption lets policies take templates from others.
	Preemption featuregate.Feature = "PropagationPolicyPreemption"
	// WorkloadAffinity keeps groups of workloads together or apart.
	WorkloadAffinity featuregate.Feature = "WorkloadAffinity"
	// MultiplePodTemplates places workloads with several components as such.
	MultiplePodTemplates featuregate.Feature = "MultiplePodTemplatesScheduling"
	// OvercommitProtection deducts what was placed and is not visible in clusters yet.
	OvercommitProtection featuregate.Feature = "SchedulingOvercommitProtection"
	// PriorityScheduling places bindings by the priority of their class.
	PriorityScheduling featuregate.Feature = "PriorityBasedScheduling"
	// ResourceModeling estimates room by the sizes of nodes.
	ResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"
	// QuotaEnforcement checks bindings against FederatedResourceQuotas.
	QuotaEnforcement featuregate.Feature = "FederatedQuotaEnforcement"
	// PropagateDeps propagates what templates refer to along with them.
	PropagateDeps featuregate.Feature = "PropagateDeps"
	// Failover moves what runs in clusters with taints of the effect NoExecute.
	Failover featuregate.Feature = "Failover"
	// GracefulEviction keeps the old copy until the new one is healthy, unless a policy decides.
	GracefulEviction featuregate.Feature = "GracefulEviction"
	// StatefulFailover passes the state of a moved workload to the new copy.
	StatefulFailover featuregate.Feature = "StatefulFailoverInjection"
	// QuotaEstimate limits what fits in members by their quotas.
	QuotaEstimate featuregate.Feature = "ResourceQuotaEstimate"
)

// The gates that set all gates of a stage that are not set themselves.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// specs are all gates. Those that work here are on, even if they are off in Karmada.
var specs = map[featuregate.Feature]featuregate.FeatureSpec{
	Preemption:           {Default: true, PreRelease: featuregate.Beta},
	WorkloadAffinity:     {Default: true, PreRelease: featuregate.Beta},
	MultiplePodTemplates: {Default: true, PreRelease: featuregate.Beta},
	OvercommitProtection: {Default: true, PreRelease: featuregate.Beta},
	PriorityScheduling:   {Default: true, PreRelease: featuregate.Beta},
	ResourceModeling:     {Default: true, PreRelease: featuregate.Beta},
	QuotaEnforcement:     {Default: true, PreRelease: featuregate.Beta},
	PropagateDeps:        {Default: true, PreRelease: featuregate.Beta},
	QuotaEstimate:        {Default: true, PreRelease: featuregate.Beta},

	"ControllerPriorityQueue": {Default: true, PreRelease: featuregate.Beta},
	"LoggingAlphaOptions":     {Default: false, PreRelease: featuregate.Alpha},
	"LoggingBetaOptions":      {Default: true, PreRelease: featuregate.Beta},
	"ContextualLogging":       {Default: true, PreRelease: featuregate.Beta},

	Failover:              {Default: false, PreRelease: featuregate.Beta},
	GracefulEviction:      {Default: true, PreRelease: featuregate.Beta},
	StatefulFailover:      {Default: true, PreRelease: featuregate.Beta},
	"MultiClusterService": {Default: false, PreRelease: featuregate.Alpha},
}

// fixed are the gates that switch nothing, with the state that always holds here.
var fixed = map[featuregate.Feature]struct {
	on  bool
	why string
}{
	"ControllerPriorityQueue": {true, "queues let no key wait forever"},
	"LoggingAlphaOptions":     {false, "the log has two formats, text and json"},
	"LoggingBetaOptions":      {true, "the log has two formats, text and json"},
	"ContextualLogging":       {true, "what is logged says what it is about"},
	"MultiClusterService":     {false, "until services across clusters are built"},
}

// switched describes what the other gates switch.
var switched = map[featuregate.Feature]string{
	Preemption:           "policies take templates from others",
	WorkloadAffinity:     "groups of workloads stay together or apart",
	MultiplePodTemplates: "workloads of several components are placed as such",
	OvercommitProtection: "room that was promised a moment ago is deducted",
	PriorityScheduling:   "bindings are placed by the priority of their class",
	ResourceModeling:     "room is estimated by the sizes of nodes",
	QuotaEnforcement:     "bindings are held against FederatedResourceQuotas",
	PropagateDeps:        "what templates refer to goes along",
	QuotaEstimate:        "what the ResourceQuotas of a cluster leave bounds what fits there",
	GracefulEviction:     "what is moved off a cluster stays there until the new copy is healthy, where its policy does not say: else it goes first",
	StatefulFailover:     "what is moved hands values of its status to the new copy, as its policy wants them (`statePreservation`)",
	Failover:             "templates are moved off clusters with taints of the effect NoExecute, if `--enable-no-execute-taint-eviction` says so, too",
}

// Gate describes one gate.
type Gate struct {
	Name    string
	Default bool
	// Here describes what it switches, or why it switches nothing.
	Here string
	// Fixed is true if it switches nothing.
	Fixed bool
}

// All lists the gates, sorted by name, without AllAlpha and AllBeta.
func All() []Gate {
	out := make([]Gate, 0, len(specs))
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if is, idle := fixed[name]; idle {
			out = append(out, Gate{Name: string(name), Default: is.on, Here: is.why, Fixed: true})
			continue
		}
		out = append(out, Gate{Name: string(name), Default: specs[name].Default, Here: switched[name]})
	}
	return out
}

// Gates is the meaning of a set of gates.
type Gates struct {
	// Preemption and so on are whether each area is on.
	Preemption, WorkloadAffinity, MultiplePodTemplates, OvercommitProtection, PriorityScheduling, ResourceModeling, QuotaEnforcement, PropagateDeps, Failover, GracefulEviction, StatefulFailover, QuotaEstimate bool
	// Kubernetes are the gates that are Kubernetes' own, as they are set.
	Kubernetes map[string]bool
	// Idle are the fixed gates that were set to another state than the fixed one, sorted by
	// name.
	Idle []Gate
}

// Read returns the meaning of set. kubernetes reports which gates Kubernetes itself has in
// this process; nil means none. AllAlpha and AllBeta apply to Karmada's gates only:
// Kubernetes does not start with all of its own.
//
// It returns an error for an unknown gate, and for one that cannot be set that way.
func Read(set map[string]bool, kubernetes func(name string) bool) (Gates, error) {
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(maps.Clone(specs)); err != nil {
		return Gates{}, err
	}
	known, ours, theirs := gate.GetAll(), map[string]bool{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		_, mine := known[featuregate.Feature(name)]
		foreign := kubernetes != nil && kubernetes(name) && name != allAlpha && name != allBeta
		if !mine && !foreign {
			return Gates{}, fmt.Errorf("there is no feature gate %q: there are %s%s", name, strings.Join(Names(), ", "), others(kubernetes))
		}
		if mine {
			ours[name] = set[name]
		}
		if foreign {
			theirs[name] = set[name]
		}
	}
	if err := gate.SetFromMap(ours); err != nil {
		return Gates{}, err
	}
	out := Gates{
		Preemption:           gate.Enabled(Preemption),
		WorkloadAffinity:     gate.Enabled(WorkloadAffinity),
		MultiplePodTemplates: gate.Enabled(MultiplePodTemplates),
		OvercommitProtection: gate.Enabled(OvercommitProtection),
		PriorityScheduling:   gate.Enabled(PriorityScheduling),
		ResourceModeling:     gate.Enabled(ResourceModeling),
		QuotaEnforcement:     gate.Enabled(QuotaEnforcement),
		PropagateDeps:        gate.Enabled(PropagateDeps),
		Failover:             gate.Enabled(Failover),
		GracefulEviction:     gate.Enabled(GracefulEviction),
		StatefulFailover:     gate.Enabled(StatefulFailover),
		QuotaEstimate:        gate.Enabled(QuotaEstimate),
		Kubernetes:           theirs,
	}
	for _, g := range All() {
		if wanted, is := set[g.Name]; is && g.Fixed && wanted != g.Default {
			out.Idle = append(out.Idle, g)
		}
	}
	return out, nil
}

func others(kubernetes func(string) bool) string {
	if kubernetes == nil {
		return ""
	}
	return ", and those of Kubernetes"
}

// Names lists the gates, sorted, with AllAlpha and AllBeta.
func Names() []string {
	names := []string{allAlpha, allBeta}
	for name := range specs {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}
