package explain

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/explain/change"
)

// What an Explanation says of its own form. Fields may be added to a version;
// none is taken away or given another meaning.
const (
	APIVersion = "cli.flotilla.io/v1alpha1"
	Kind       = "Explanation"
)

// Explanation says why a template runs where it runs.
type Explanation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Resource is the template.
	Resource Resource `json:"resource"`
	// Problems that keep it from running as it should, the one to see to first
	// at the front. Empty: none.
	Problems []Problem `json:"problems,omitempty"`
	// Unread names what could not be read: what depends on it is left out or may be
	// wrong. Empty: all was read.
	Unread []string `json:"unread,omitempty"`
	// Carried says which policy carries it.
	Carried Carried `json:"carried"`
	// Carries says what a propagation policy carries. Nil for other kinds.
	Carries *Carries `json:"carries,omitempty"`
	// Policies that select it, the winner first, and those that nearly do.
	Policies []Policy `json:"policies,omitempty"`
	// Placement says where it runs and why. Nil where nothing carries it and
	// it has no binding.
	Placement *Placement `json:"placement,omitempty"`
	// Overrides say what differs by cluster.
	Overrides *Overrides `json:"overrides,omitempty"`
	// Delivery says how it gets there. Nil like Placement.
	Delivery *Delivery `json:"delivery,omitempty"`
}

// Resource names a template.
type Resource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for cluster-scoped kinds.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Stored is false for one that the control plane does not hold.
	Stored bool `json:"stored"`
	// Replicas that it asks for; nil for kinds that have none.
	Replicas *int32 `json:"replicas,omitempty"`
	// Components are the replicas of each part of a workload that has several pod
	// templates. Clusters run the whole set of them.
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
	// ReasonDrifted is that of what was changed in clusters and is left so.
	ReasonDrifted = "Drifted"
	// ReasonNotInterpreted is that of a kind whose rules, or webhook, fail.
	ReasonNotInterpreted = "NotInterpreted"
	// ReasonUnknownCluster is that of a policy that names a cluster that does not exist.
	ReasonUnknownCluster = "UnknownCluster"
	// Reasons of a policy that is explained itself.
	ReasonPolicyNotReady = "PolicyNotReady"
	ReasonPolicyIdle     = "PolicyIdle"
	ReasonPolicyProblem  = "PolicyProblem"
)

// Problem is something that somebody should see to.
type Problem struct {
	// Reason is CamelCase and stable.
	Reason string `json:"reason"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Next is what to do about it; empty where there is nothing but to wait.
	Next string `json:"next,omitempty"`
	// Clusters that it is about; empty where it is about all.
	Clusters []string `json:"clusters,omitempty"`
}

// Carried says which policy carries the template.
type Carried struct {
	// By is the policy that the template says it is claimed by; nil for none.
	By *Ref `json:"by,omitempty"`
	// Now is the policy that it would be given now; nil for none.
	Now *Ref `json:"now,omitempty"`
	// Why says in words how that comes.
	Why string `json:"why"`
}

// Carries is what a propagation policy carries, as it was counted last.
type Carries struct {
	Templates int32 `json:"templates"`
	// Bindings is how many of the templates have a binding, Placed how many of those have a
	// placement.
	Bindings int32 `json:"bindings"`
	Placed   int32 `json:"placed"`
}

// Outcome of a policy.
type Outcome string

// What became of a policy.
const (
	// Won carries the template.
	Won Outcome = "won"
	// Waits would carry it and is not ready.
	Waits Outcome = "waits"
	// Lost selects it, and another one carries it.
	Lost Outcome = "lost"
	// NotSelected is about its kind and does not select it.
	NotSelected Outcome = "not selected"
)

// Policy is what became of one policy.
type Policy struct {
	Ref      `json:",inline"`
	Outcome  Outcome `json:"outcome"`
	Why      string  `json:"why"`
	Priority int32   `json:"priority"`
	// Selects says how: "by name", "by labels", "all of its kind" or "none".
	Selects string `json:"selects"`
}

// Placement says where the template runs and why.
type Placement struct {
	// Stands is what was decided. Nil where it has no binding.
	Stands *Standing `json:"stands,omitempty"`
	// Attached: it runs where the templates run that need it, and nothing else is
	// decided about that.
	Attached bool `json:"attached,omitempty"`
	// Now is what a decision would say at this moment. Nil where the clusters
	// could not be read, or nothing is to be decided.
	Now *Prospect `json:"now,omitempty"`
	// Groups of workloads that it is in.
	Groups []Group `json:"groups,omitempty"`
	// Terms of the affinity that such a decision would try, the one that it would
	// take last. There is one without a name where the policy has no terms.
	Terms []Term `json:"terms,omitempty"`
}

// Target is a cluster and its share.
type Target struct {
	Name string `json:"name"`
	// Replicas are zero for kinds that have none.
	Replicas int32 `json:"replicas,omitempty"`
	// Components that it runs, where the decision names them.
	Components map[string]int32 `json:"components,omitempty"`
}

// Group is a group of workloads that run together, or apart.
type Group struct {
	// Name is key=value of the label that makes the group.
	Name string `json:"name"`
	// Apart says that its members keep away from each other.
	Apart bool `json:"apart,omitempty"`
	// Clusters that the other members run on.
	Clusters []string `json:"clusters,omitempty"`
}

// Standing is a decision that was made.
type Standing struct {
	// Clusters it runs on.
	Clusters []Target `json:"clusters"`
	// RequiredBy are the templates for whose sake it runs on further clusters.
	RequiredBy []string `json:"requiredBy,omitempty"`
	// Leaving are the clusters that it is moved away from.
	Leaving []Leaving `json:"leaving,omitempty"`
	// Leaves says which clusters it is to be moved off as they are lost or tainted, and when, or what keeps it there: "west at
	// 06:21:04 UTC (in 40s) unless it is back: untolerated taint {a:NoExecute}". Empty where its decision has not noted by what rules.
	Leaves []string `json:"leaves,omitempty"`
	// Moved says how it came to be where it is: "from west to east at 2026-01-02 06:11:04 UTC, 12m ago: untolerated taint
	// {a:NoExecute}". Empty where it has left no cluster, and while it still does.
	Moved string `json:"moved,omitempty"`
	// Returns says where it is to return to, and when: "to west at 06:21:04 UTC, when that has been well for 30s"; or why it
	// does not, and what brings it back.
	Returns []string `json:"returns,omitempty"`
	// Term of the affinity in force; empty where there are none.
	Term string `json:"term,omitempty"`
	// Reason, Message and At are the record of the decision; empty where there is
	// none.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	At      *metav1.Time `json:"at,omitempty"`
}

// Leaving is a cluster that the template is moved away from.
type Leaving struct {
	Cluster string `json:"cluster"`
	// Reason and Producer say why, and by whom; either may be empty.
	Reason   string `json:"reason,omitempty"`
	Producer string `json:"producer,omitempty"`
	// Message says until when it stays there, or why, and since when; may be empty.
	Message string `json:"message,omitempty"`
}

// Prospect is what a decision would say.
type Prospect struct {
	// Same says that it is what stands.
	Same     bool     `json:"same"`
	Clusters []Target `json:"clusters"`
	Term     string   `json:"term,omitempty"`
	// Passed are the terms of the affinity that are not tried again until a
	// rebalance is asked for.
	Passed []string `json:"passed,omitempty"`
	// Error is why there would be no placement; empty where there would.
	Error string `json:"error,omitempty"`
	// Due is why the decision is about to be made; empty where it is not.
	Due string `json:"due,omitempty"`
	// NotDue is why it is not made; empty where Due says something.
	NotDue string `json:"notDue,omitempty"`
	// Plugins that the control plane decides by and this program does not have: the
	// rest is what comes of the others. Empty: none.
	Plugins []string `json:"plugins,omitempty"`
}

// Term is what a decision would make of one term of the affinity.
type Term struct {
	// Name is empty where the policy has no terms.
	Name string `json:"name,omitempty"`
	// Error is why it is not taken; empty for the one that is.
	Error string `json:"error,omitempty"`
	// Spread and Division say what the constraints chose and how replicas are
	// divided; empty where there is nothing to say.
	Spread   string `json:"spread,omitempty"`
	Division string `json:"division,omitempty"`
	// Clusters by name.
	Clusters []Verdict `json:"clusters"`
}

// Result of one cluster.
type Result string

// What a cluster was found to be.
const (
	// Chosen gets the template.
	Chosen Result = "chosen"
	// LeftOut fits and does not get it.
	LeftOut Result = "left out"
	// Fits could have it; the term as a whole is not taken.
	Fits Result = "fits"
	// Refused does not fit.
	Refused Result = "refused"
)

// Verdict is what a term makes of one cluster.
type Verdict struct {
	Cluster string `json:"cluster"`
	Result  Result `json:"result"`
	// Plugin that refused it.
	Plugin string `json:"plugin,omitempty"`
	// Why it was refused or left out.
	Why string `json:"why,omitempty"`
	// Taints that its operators gave it, as "key=value:Effect".
	Taints []string `json:"taints,omitempty"`
	// Cordoned says that nothing new is to go there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Score in all, and by plugin.
	Score  int64            `json:"score,omitempty"`
	Scores map[string]int64 `json:"scores,omitempty"`
	// Capacity is for how many replicas it has room in all; nil where room does not
	// matter.
	Capacity *int64 `json:"room,omitempty"`
	// Counted is how long ago that was counted on its nodes, for the decision that stands, such as 12s; empty where it is by what
	// the cluster reports.
	Counted string `json:"counted,omitempty"`
	// Unreported is what the cluster does not report of its nodes, so that for the decision that stands what it reports counted, such as
	// "the label zone". Empty: nothing.
	Unreported string `json:"untold,omitempty"`
	// Tier is 0 for clusters of the affinity itself, i+1 for those of its i-th
	// overflow affinity.
	Tier int `json:"tier,omitempty"`
	// Weight by which replicas are divided; 0 where there is none.
	Weight int64 `json:"weight,omitempty"`
	// Replicas that it would get, and those that it has.
	Replicas int32 `json:"replicas,omitempty"`
	Assigned int32 `json:"held,omitempty"`
}

// Overrides say what differs by cluster.
type Overrides struct {
	// Clusters in which overrides apply, by name.
	Clusters []ClusterOverrides `json:"clusters,omitempty"`
	// Idle are those that select the template and none of its clusters.
	Idle []Ref `json:"idle,omitempty"`
}

// ClusterOverrides are the overrides of one cluster.
type ClusterOverrides struct {
	Cluster string `json:"cluster"`
	// Rules that apply, in their order.
	Rules []Rule `json:"rules,omitempty"`
	// Error is why the manifest cannot be made; the cluster keeps what it has.
	Error string `json:"error,omitempty"`
}

// Rule is one rule of an override.
type Rule struct {
	Policy Ref `json:"policy"`
	// Index in overrideRules; -1 for the deprecated fields of the policy.
	Index int `json:"index"`
	// Changes that it makes to what the rules before it left. Empty: none.
	Changes []change.Change `json:"changes,omitempty"`
}

// Delivery says how the template gets to its clusters, and what came of it.
type Delivery struct {
	// Suspended says that changes reach no cluster.
	Suspended bool `json:"suspended,omitempty"`
	// Conflicts says what happens to an object that is in the way: Abort leaves
	// it, Overwrite takes it over.
	Conflicts string `json:"conflicts"`
	// Preserved says that members keep the object when the template is deleted.
	Preserved bool `json:"preserved,omitempty"`
	// Clusters that hold it or should, by name. Empty where it has no binding.
	Clusters []Delivered `json:"clusters,omitempty"`
	// AsReported says that the clusters could not be read, so that any of them may be silent;
	// programs find that in Unread.
	AsReported bool `json:"-"`
}

// Delivered is how one cluster does.
type Delivered struct {
	Cluster string `json:"cluster"`
	// Suspended says that changes do not reach it.
	Suspended bool `json:"suspended,omitempty"`
	// Leaving says that it is to be gone from there.
	Leaving bool `json:"leaving,omitempty"`
	// Kept says what it stays there for until it is gone: "kept until west is
	// healthy". Empty where it does not.
	Kept string `json:"kept,omitempty"`
	// Silent says that nothing is heard of the cluster, and for how long, such as
	// "unreachable for 3m": what else is shown here was so then. Empty where it answers.
	Silent string `json:"silent,omitempty"`
	// Applied says that the cluster holds what it should; nil where that is not
	// known.
	Applied *bool `json:"applied,omitempty"`
	// Outdated says that the version before runs there, and what is shown here is about that.
	Outdated bool `json:"outdated,omitempty"`
	// Stays says that it goes on running there, as no policy carries the template any more.
	Stays bool `json:"stays,omitempty"`
	// Health is Healthy, Unhealthy, Unknown or, of a Job that has not ended, Running, or, of
	// a Deployment of which the version before runs as well, Updating; empty where nothing
	// is known.
	Health string `json:"health,omitempty"`
	// Message of the member where it was not applied, or why the latest version is not.
	Message string `json:"message,omitempty"`
	// Ails is what keeps it from being healthy there, as its Pods say; empty where it is
	// healthy, and where that is not known.
	Ails string `json:"ails,omitempty"`
}
