package explain

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/explain/change"
)

// The type of an Explanation, as it is encoded. Within a version, fields may be
// added, but are never removed or given another meaning.
const (
	APIVersion = "cli.flotilla.io/v1alpha1"
	Kind       = "Explanation"
)

// Explanation explains why a template runs where it runs.
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Resource names the template.
	Resource Resource `json:"resource"`
	// Problems that keep it from running as it should, the most important first. Empty: none.
	Problems []Problem `json:"problems,omitempty"`
	// Unread names what could not be read: what depends on it is left out or may
	// be wrong. Empty: everything was read.
	Unread []string `json:"unread,omitempty"`
	// Carried is which policy carries it.
	Carried Carried `json:"carried"`
	// Carries is what it carries, where it is a propagation policy itself. Nil for other kinds.
	Carries *Carries `json:"carries,omitempty"`
	// Policies that select it, beginning with the one that carries it, and those that nearly do.
	Policies []Policy `json:"policies,omitempty"`
	// Placement is where it runs and why. Nil where no policy carries it and it has no binding.
	Placement *Placement `json:"placement,omitempty"`
	// Overrides are what differs from cluster to cluster.
	Overrides *Overrides `json:"overrides,omitempty"`
	// Delivery is how it gets to its clusters. Nil like Placement.
	Delivery *Delivery `json:"delivery,omitempty"`
}

// Resource names a template.
type Resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for cluster-scoped kinds.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Stored is false where the control plane does not have the template.
	Stored bool `json:"stored"`
	// Replicas that the template asks for; nil for kinds that have none.
	Replicas *int32 `json:"replicas,omitempty"`
	// Components are the replicas of each part of a workload that has several pod
	// templates. Each cluster runs the whole set.
	Components map[string]int32 `json:"components,omitempty"`
}

// Ref names a policy or an override.
type Ref struct {
	Kind string `json:"kind"`
	// Namespace is empty for cluster-wide ones.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the kind and the name, with the namespace where there is one.
func (r Ref) String() string {
	return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// Reasons of problems.
const (
	ReasonNeverPropagated      = "NeverPropagated"
	ReasonDeleting             = "Deleting"
	ReasonNoPolicy             = "NoPolicy"
	ReasonWaitingForOverrides  = "WaitingForOverrides"
	ReasonWaitingForEdit       = "WaitingForEdit"
	ReasonInvalidTemplate      = "InvalidTemplate"
	ReasonBindingTaken         = "BindingTaken"
	ReasonNotBound             = "NotBound"
	ReasonBehind               = "Behind"
	ReasonNotPlaced            = "NotPlaced"
	ReasonNoReplacement        = "NoReplacement"
	ReasonSchedulingSuspended  = "SchedulingSuspended"
	ReasonOtherScheduler       = "OtherScheduler"
	ReasonOverrideFailed       = "OverrideFailed"
	ReasonNotApplied           = "NotApplied"
	ReasonDispatchingSuspended = "DispatchingSuspended"
	ReasonClusterSilent        = "ClusterSilent"
	ReasonUnhealthy            = "Unhealthy"
	ReasonUnreadableRecord     = "UnreadableRecord"
	// ReasonDrifted is for objects that were changed in clusters and are not changed back.
	ReasonDrifted = "Drifted"
	// ReasonNotInterpreted is for templates whose kind's rules, or webhook, fail.
	ReasonNotInterpreted = "NotInterpreted"
	// ReasonUnknownCluster is for policies that name a cluster that does not exist.
	ReasonUnknownCluster = "UnknownCluster"
	// Reasons for a template that is a policy itself.
	ReasonPolicyNotReady = "PolicyNotReady"
	ReasonPolicyIdle     = "PolicyIdle"
	ReasonPolicyProblem  = "PolicyProblem"
)

// Problem is something that somebody should look at.
type Problem struct {
	// Reason is in CamelCase, and does not change between releases.
	Reason string `json:"reason"`
	// Message is what is wrong.
	Message string `json:"message"`
	// Next is what to do about it; empty where one can only wait.
	Next string `json:"next,omitempty"`
	// Clusters that have the problem; empty where it is not about single clusters.
	Clusters []string `json:"clusters,omitempty"`
}

// Carried is which policy carries the template, and which one would now.
type Carried struct {
	// By is the policy by which the template is claimed, according to its labels; nil for none.
	By *Ref `json:"by,omitempty"`
	// Now is the policy that would claim the template now; nil for none.
	Now *Ref `json:"now,omitempty"`
	// Why is the reason, for people.
	Why string `json:"why"`
}

// Carries is what a propagation policy carries, as its status counts it.
type Carries struct {
	Templates int32 `json:"templates"`
	// Bindings is how many of the templates have a binding, and Placed how many of those have a placement.
	Bindings int32 `json:"bindings"`
	Placed   int32 `json:"placed"`
}

// Outcome is what became of a policy for a template.
type Outcome string

// Outcomes of policies.
const (
	// Won means that the policy carries the template.
	Won Outcome = "won"
	// Waits means that it would carry the template, but has to wait for its overrides.
	Waits Outcome = "waits"
	// Lost means that it selects the template, but another policy carries it.
	Lost Outcome = "lost"
	// NotSelected means that it is about the kind, but does not select the template.
	NotSelected Outcome = "not selected"
)

// Policy is what became of one policy for the template.
type Policy struct {
	Ref      `json:",inline"`
	Outcome  Outcome `json:"outcome"`
	Why      string  `json:"why"`
	Priority int32   `json:"priority"`
	// Selects is how it selects the template: "by name", "by labels", "all of its kind" or "none".
	Selects string `json:"selects"`
}

// Placement is where the template runs and why.
type Placement struct {
	// Stands is the decision that is in force. Nil where the template has no binding.
	Stands *Standing `json:"stands,omitempty"`
	// Attached means that it runs wherever the templates run that need it, so that there is no decision of its own.
	Attached bool `json:"attached,omitempty"`
	// Now is what a decision would be at this moment. Nil where the clusters could
	// not be read, or there is nothing to decide.
	Now *Prospect `json:"now,omitempty"`
	// Groups are the affinity groups of workloads that it is in.
	Groups []Group `json:"groups,omitempty"`
	// Terms of the affinity that such a decision would try, in order; the last one is the one that it would take.
	// Where the policy has no terms, there is one without a name.
	Terms []Term `json:"terms,omitempty"`
}

// Target is a cluster, and what of the template is placed in it.
type Target struct {
	Name string `json:"name"`
	// Replicas are zero for kinds that have none.
	Replicas int32 `json:"replicas,omitempty"`
	// Components are the replicas of each component, where the decision names them.
	Components map[string]int32 `json:"components,omitempty"`
}

// Group is a group of workloads that run together, or apart.
type Group struct {
	// Name is key=value of the label by which workloads belong to the group.
	Name string `json:"name"`
	// Apart means that the members of the group keep away from each other.
	Apart bool `json:"apart,omitempty"`
	// Clusters that the other members of the group run on.
	Clusters []string `json:"clusters,omitempty"`
}

// Standing is the decision that is in force.
type Standing struct {
	// Clusters that it runs on.
	Clusters []Target `json:"clusters"`
	// RequiredBy are the templates that need it, because of which it runs on further clusters.
	RequiredBy []string `json:"requiredBy,omitempty"`
	// Leaving are the clusters that it is moved away from.
	Leaving []Leaving `json:"leaving,omitempty"`
	// Leaves is, for each cluster that it will be moved away from because the cluster is lost or tainted, or as it is
	// unhealthy there, when, or what keeps it there: "west at 06:21:04 UTC (in 40s) unless it is back: untolerated
	// taint {a:NoExecute}". Of lost and tainted ones nothing where the record of its decision has no failover rules.
	Leaves []string `json:"leaves,omitempty"`
	// Moved is how it came to be where it is: "from west to east at 2026-01-02 06:11:04 UTC, 12m ago: untolerated
	// taint {a:NoExecute}". Empty where it has left no cluster, and while it is still leaving one.
	Moved string `json:"moved,omitempty"`
	// Returns is where it will return to, and when: "to west at 06:21:04 UTC, when that has been well for 30s"; or
	// why it does not return, and what would make it.
	Returns []string `json:"returns,omitempty"`
	// Term of the affinity that the decision took; empty where there are no terms.
	Term string `json:"term,omitempty"`
	// Reason, Message and At are those of the decision's record; empty where there is none.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	At      *metav1.Time `json:"at,omitempty"`
}

// Leaving is a cluster that the template is moved away from.
type Leaving struct {
	Cluster string `json:"cluster"`
	// Reason and Producer are why it is moved, and by whom; either may be empty.
	Reason   string `json:"reason,omitempty"`
	Producer string `json:"producer,omitempty"`
	// Message is until when it stays there, or why and since when; it may be empty.
	Message string `json:"message,omitempty"`
}

// Prospect is what a decision would be now.
type Prospect struct {
	// Same means that it would be the decision that is in force.
	Same     bool     `json:"same"`
	Clusters []Target `json:"clusters"`
	Term     string   `json:"term,omitempty"`
	// Passed are the terms of the affinity that are not tried again until a rebalance is requested.
	Passed []string `json:"passed,omitempty"`
	// Error is why there would be no placement; empty where there would.
	Error string `json:"error,omitempty"`
	// Due is why the loops are about to make the decision; empty where they are not.
	Due string `json:"due,omitempty"`
	// NotDue is why they are not; empty where Due is set.
	NotDue string `json:"notDue,omitempty"`
	// Plugins are those by which the control plane decides and that this program
	// does not have: the rest is the result without them. Empty: none.
	Plugins []string `json:"plugins,omitempty"`
}

// Term is what a decision would make of one term of the affinity.
type Term struct {
	// Name is empty where the policy has no terms.
	Name string `json:"name,omitempty"`
	// Error is why the term is not taken; empty for the one that is.
	Error string `json:"error,omitempty"`
	// Spread and Division explain what the spread constraints selected and how
	// replicas are divided; either may be empty.
	Spread   string `json:"spread,omitempty"`
	Division string `json:"division,omitempty"`
	// Clusters are the verdicts, sorted by name.
	Clusters []Verdict `json:"clusters"`
}

// Result is what a decision would make of one cluster.
type Result string

// Results of clusters.
const (
	// Chosen means that the cluster gets the template.
	Chosen Result = "chosen"
	// LeftOut means that it fits, but does not get the template.
	LeftOut Result = "left out"
	// Fits means that it could get the template, but the term as a whole is not taken.
	Fits Result = "fits"
	// Refused means that it does not fit.
	Refused Result = "refused"
)

// Counting says how the Capacity of a Verdict was counted. The zero value: by the cluster's status.
type Counting struct {
	// Counted is how long before now, such as "12s", Capacity was counted on the cluster's nodes for the decision that is in force.
	Counted string `json:"counted,omitempty"`
	// CountedBy is who counted: "nodes", "agent" or "estimator".
	CountedBy string `json:"countedBy,omitempty"`
	// Unreported is what the cluster's status does not show of its nodes, such as "the label zone", so that
	// Capacity is only what the sum of its nodes allows. Empty: nothing.
	Unreported string `json:"untold,omitempty"`
}

// Verdict is the result of one cluster in a term, and the reasons.
type Verdict struct {
	Cluster string `json:"cluster"`
	Result  Result `json:"result"`
	// Plugin is the one that refused the cluster; empty where none did.
	Plugin string `json:"plugin,omitempty"`
	// Why is the reason for which it was refused or left out.
	Why string `json:"why,omitempty"`
	// Taints that its operators set, as "key=value:Effect".
	Taints []string `json:"taints,omitempty"`
	// Cordoned means that it gets no new replicas.
	Cordoned bool `json:"cordoned,omitempty"`
	// Drained means that what it has is to leave, too.
	Drained bool `json:"drained,omitempty"`
	// Score is the sum of Scores, which are by plugin.
	Score  int64            `json:"score,omitempty"`
	Scores map[string]int64 `json:"scores,omitempty"`
	// Capacity is how many replicas it could run in total; nil where capacity does not matter.
	Capacity *int64 `json:"room,omitempty"`
	Counting
	// Tier is 0 for clusters of the affinity itself, and i+1 for those of overflow affinity i.
	Tier int `json:"tier,omitempty"`
	// Weight by which replicas are divided; 0 where there are no weights.
	Weight int64 `json:"weight,omitempty"`
	// Replicas are those that it would get, and Assigned those that it has.
	Replicas int32 `json:"replicas,omitempty"`
	Assigned int32 `json:"held,omitempty"`
}

// Overrides are what differs from cluster to cluster.
type Overrides struct {
	// Clusters in which overrides apply, sorted by name.
	Clusters []ClusterOverrides `json:"clusters,omitempty"`
	// Idle are overrides that select the template, but none of its clusters.
	Idle []Ref `json:"idle,omitempty"`
}

// ClusterOverrides are the overrides of one cluster.
type ClusterOverrides struct {
	Cluster string `json:"cluster"`
	// Rules that apply, in the order in which they do.
	Rules []Rule `json:"rules,omitempty"`
	// Error is why the manifest cannot be made; the cluster then keeps what it has.
	Error string `json:"error,omitempty"`
}

// Rule is one rule of an override.
type Rule struct {
	Policy Ref `json:"policy"`
	// Index in spec.overrideRules; -1 for the deprecated fields of the policy.
	Index int `json:"index"`
	// Changes that the rule makes after those before it. Empty: none.
	Changes []change.Change `json:"changes,omitempty"`
}

// Delivery is how the template gets to its clusters, and what became of it there.
type Delivery struct {
	// Suspended means that changes reach no cluster.
	Suspended bool `json:"suspended,omitempty"`
	// Conflicts is what happens to an object of the same name that a member
	// already has: Abort leaves it, Overwrite takes it over.
	Conflicts string `json:"conflicts"`
	// Preserved means that members keep the object when the template is deleted.
	Preserved bool `json:"preserved,omitempty"`
	// Clusters that have the template or should, sorted by name. Empty where it has no binding.
	Clusters []Delivered `json:"clusters,omitempty"`
	// AsReported means that the clusters could not be read, so that any of them
	// may be silent. It is not encoded, as programs find that in Unread.
	AsReported bool `json:"-"`
}

// Delivered is the state of the template in one cluster.
type Delivered struct {
	Cluster string `json:"cluster"`
	// Suspended means that changes do not reach the cluster.
	Suspended bool `json:"suspended,omitempty"`
	// Leaving means that it is to be removed from the cluster.
	Leaving bool `json:"leaving,omitempty"`
	// Kept is until when it stays there although it is leaving: "kept until west
	// is healthy". Empty where it does not stay.
	Kept string `json:"kept,omitempty"`
	// Silent is how long the cluster has not been heard of, such as "unreachable for 3m": the other fields are as
	// it reported them last. Empty where the cluster answers.
	Silent string `json:"silent,omitempty"`
	// Applied means that the cluster has what it should; nil where that is not known.
	Applied *bool `json:"applied,omitempty"`
	// Outdated means that the cluster runs the version before, and the other fields are about that one.
	Outdated bool `json:"outdated,omitempty"`
	// Stays means that this version goes on running there, as no policy carries the template any more.
	Stays bool `json:"stays,omitempty"`
	// Health is Healthy, Unhealthy or Unknown; Running for a Job that has not ended; Updating for a Deployment of
	// which the version before runs, too; empty where nothing is known.
	Health string `json:"health,omitempty"`
	// Message is why the template, or its latest version, was not applied.
	Message string `json:"message,omitempty"`
	// Ails is why it is not healthy there, according to its Pods; empty where it is healthy, or that is not known.
	Ails string `json:"ails,omitempty"`
}
