package comparison

import (
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/explain/change"
)

// The type of a Comparison, as it is encoded. Within a version, fields may be added, but are never removed or given
// another meaning.
const (
	APIVersion = "cli.flotilla.io/v1alpha1"
	Kind       = "Comparison"
)

// Comparison is what a change does to each cluster.
type Comparison struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// WhatIf are the events that are supposed after the change, such as "eu-3:down".
	WhatIf []string `json:"whatIf,omitempty"`
	// Notes are what is to be said of those besides, each on one line for people.
	Notes   []string `json:"notes,omitempty"`
	Summary Summary  `json:"summary"`
	// Risks are what a reviewer should look at, the worst first.
	Risks []Risk `json:"risks,omitempty"`
	// Placements are the templates that move, or whose replicas do, sorted by name.
	Placements []Placement `json:"placements,omitempty"`
	// Changes are the objects that differ in clusters: deletions first, then by name.
	Changes []Change `json:"changes,omitempty"`
	// Restarts are workloads that change, and what becomes of their pods, sorted by name.
	Restarts []Restart `json:"restarts,omitempty"`
	// Held are templates about which nothing is decided any more, so that clusters keep what they have of them.
	Held []Held `json:"held,omitempty"`
	// Supposed is WhatIf as a clause, such as "eu-3 is down"; empty for none.
	Supposed string `json:"-"`
}

// Empty reports whether the change does nothing: no cluster will hold anything else, and nothing is at risk by it.
func (c Comparison) Empty() bool {
	return len(c.Risks)+len(c.Placements)+len(c.Changes)+len(c.Restarts)+len(c.Held) == 0
}

// Refused returns the worst risk by which a Kustomization will not apply the change, for a fault of the change itself; false for none.
func (c Comparison) Refused() (Risk, bool) {
	i := slices.IndexFunc(c.Risks, func(r Risk) bool { return slices.Contains([]string{RiskBuild, RiskShared, RiskNotTaken}, r.Reason) })
	if i < 0 {
		return Risk{}, false
	}
	return c.Risks[i], true
}

// Summary counts what a Comparison lists.
type Summary struct {
	// Deleted, Created, Updated, Moved and Left count objects in clusters: one object in three clusters counts three
	// times.
	Deleted int `json:"deleted"`
	Created int `json:"created"`
	Updated int `json:"updated"`
	Moved   int `json:"moved"`
	Left    int `json:"left"`
	// Clusters that hold something else afterwards, and Objects that differ in one of them.
	Clusters int `json:"clusters"`
	Objects  int `json:"objects"`
	// Restarts are the pods that restart, as far as their number is known.
	Restarts int64 `json:"restarts"`
}

// Object names an object that clusters hold.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for cluster-scoped kinds.
	Namespace string `json:"namespace,omitempty"`
	// Name is *** where text of a Secret is in it.
	Name string `json:"name"`
	// Kustomization that applies its template, as NAMESPACE/NAME; the new one where it has another one than before.
	// Empty where none does.
	Kustomization string `json:"kustomization,omitempty"`
}

// String returns the kind and the name, with the namespace where there is one.
func (o Object) String() string {
	return o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Action is what happens to an object in a cluster.
type Action string

// Actions, in the order in which they are listed.
const (
	// Deleted means that the object goes, and what it runs.
	Deleted Action = "deleted"
	// Left means that the cluster keeps it, and that nobody looks after it any more.
	Left Action = "left"
	// Created means that the cluster did not have it.
	Created Action = "created"
	// Updated means that its content changes.
	Updated Action = "updated"
	// Suspended means that no change reaches it any more, and Resumed that changes do again.
	Suspended Action = "suspended"
	Resumed   Action = "resumed"
	// Moved means that only its owner changes: its Kustomization, or the policy that carries it.
	Moved Action = "moved"
)

// rank orders actions.
func (a Action) rank() int {
	for i, other := range []Action{Deleted, Left, Created, Updated, Suspended, Resumed} {
		if a == other {
			return i
		}
	}
	return len(a) + 1000
}

// Change is one difference of one object, and the clusters in which it is the same.
type Change struct {
	Object `json:",inline"`
	Action Action `json:"action"`
	// Clusters in which this happens, sorted; at least one.
	Clusters []string `json:"clusters"`
	// Fields that differ, sorted by path. Empty unless it is updated or moved.
	Fields []change.Change `json:"fields,omitempty"`
	// Unknown means that it is not known what these clusters have now, as nothing could be made for them before: Fields
	// is empty.
	Unknown bool `json:"unknown,omitempty"`
	// Suspended means that the change does not reach these clusters before dispatching is resumed.
	Suspended bool `json:"dispatchingSuspended,omitempty"`
	// Before and After are the manifests in the first of the clusters, without what the fleet adds and with stand-ins for
	// values of Secrets. Either is nil where there is none, or where it is not known.
	Before map[string]any `json:"-"`
	After  map[string]any `json:"-"`
}

// Placement is how a template moves.
type Placement struct {
	Object `json:",inline"`
	// PolicyBefore and Policy are what carries it, such as "PropagationPolicy shop/web"; empty for none.
	PolicyBefore string `json:"policyBefore,omitempty"`
	Policy       string `json:"policy,omitempty"`
	// Shifts are the clusters that gain or lose it, or get another number of replicas, sorted by name.
	Shifts []Shift `json:"shifts"`
	// Why is the reason, as the decision records it.
	Why string `json:"why,omitempty"`
}

// Shift is how a template changes in one cluster.
type Shift struct {
	Cluster string `json:"cluster"`
	// Before and After are its replicas, zero for kinds that have none. Before is nil in a cluster that gains it, and
	// After in one that loses it.
	Before *int32 `json:"before,omitempty"`
	After  *int32 `json:"after,omitempty"`
}

// Effect is what becomes of the pods of a workload that changes.
type Effect string

// Effects on pods.
const (
	// Restarts means that the pods are replaced, or their containers restarted.
	Restarts Effect = "restart"
	// Stays means that they run on as they are.
	Stays Effect = "stay"
	// Refused means that the cluster will not take the change.
	Refused Effect = "refused"
	// Uncertain means that it depends on a controller about which nothing is known here.
	Uncertain Effect = "uncertain"
)

// Restart is what becomes of the pods of a workload.
type Restart struct {
	Object   `json:",inline"`
	Clusters []string `json:"clusters"`
	Effect   Effect   `json:"effect"`
	// Pods is how many run in these clusters before; nil where that is not known.
	Pods *int64 `json:"pods,omitempty"`
	// Why is the reason, for people.
	Why string `json:"why"`
}

// Held is a template about which nothing is decided after the change.
type Held struct {
	Object `json:",inline"`
	// Clusters that keep what they have of it, sorted.
	Clusters []string `json:"clusters"`
	// Why is the reason, for people.
	Why string `json:"why"`
}

// Reasons of risks, the worst first.
const (
	// RiskNamespace, RiskDefinition and RiskVolume are deletions by which more goes than is listed.
	RiskNamespace  = "DeletesNamespace"
	RiskDefinition = "DeletesDefinition"
	RiskVolume     = "DeletesVolume"
	// RiskBrake means that the brake on deletions will refuse the revision.
	RiskBrake = "BrakeCloses"
	// RiskBuild, RiskShared, RiskDependency and RiskNotTaken mean that a Kustomization will not apply the change: it cannot be
	// built, holds what another one holds as well, depends on one that will not apply it, or has what the control plane does
	// not take. It keeps what it has.
	RiskBuild      = "BuildFails"
	RiskShared     = "SharedObject"
	RiskDependency = "DependencyNotReady"
	RiskNotTaken   = "NotTaken"
	// RiskNotFollowed means that more happens than was compared: what other Kustomizations do that change with it.
	RiskNotFollowed = "NotFollowed"
	// RiskOneCluster means that a workload that ran in several clusters runs in one.
	RiskOneCluster = "OneCluster"
	// RiskNotPlaced means that no cluster is found for a template: clusters lack room, or none fits.
	RiskNotPlaced = "NotPlaced"
	// RiskQuota means that a FederatedResourceQuota will not do.
	RiskQuota = "QuotaExceeded"
	// RiskNotMade means that what a cluster should hold cannot be made, so that it keeps what it has.
	RiskNotMade = "NotMade"
	// RiskOverrideFails is the same because an override does not fit any more.
	RiskOverrideFails = "OverrideFails"
	// RiskUnknownCluster means that a policy or an override names a cluster that nobody has.
	RiskUnknownCluster = "UnknownCluster"
	// RiskTakesOver means that a policy takes a template that another one carried, or one of others that did not change.
	RiskTakesOver = "TakesOver"
	// RiskImages means that clusters will run different versions of an image.
	RiskImages = "ImagesDiffer"
	// RiskIdlePolicy and RiskIdleOverride mean that a policy carries nothing, and that an override changes nothing.
	RiskIdlePolicy   = "IdlePolicy"
	RiskIdleOverride = "IdleOverride"
)

// KustomizationRisk returns a risk of a Kustomization, NAMESPACE/NAME, as a whole.
func KustomizationRisk(reason, name, text string) Risk {
	return Risk{Reason: reason, Policy: kustomizationTitle + name, Message: kustomizationTitle + name + ": " + text}
}

// Risk is something that a reviewer should look at.
type Risk struct {
	// Reason is one of the constants, and does not change between releases.
	Reason string `json:"reason"`
	// Object that is at risk; nil where it is about a policy alone.
	Object *Object `json:"object,omitempty"`
	// Policy, override or Kustomization that it is about, such as "OverridePolicy shop/tag"; empty for none.
	Policy string `json:"policy,omitempty"`
	// Clusters that it is about, sorted; empty where it is not about single ones.
	Clusters []string `json:"clusters,omitempty"`
	// Message is one line for people.
	Message string `json:"message"`
}
