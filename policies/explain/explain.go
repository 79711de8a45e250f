package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain/hint"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

// Input is what an explanation is made from. Only Template is required; what is
// missing counts as not existing. Nothing in it is changed.
type Input struct {
	// Template with its metadata. Without a UID it is not on the control plane. Without a creation time it is a
	// manifest, which lacks what the API server fills in.
	Template *unstructured.Unstructured
	// Binding of the template; nil where it has none.
	Binding   workv1alpha2.Binding
	Policies  []policyv1alpha1.Policy
	Overrides []policyv1alpha1.Override
	// Quotas of the namespace; none where no quota is enforced.
	Quotas   []*policyv1alpha1.FederatedResourceQuota
	Clusters []*clusterv1alpha1.Cluster
	// Bindings of the namespace, for workload affinity; Binding may be among them.
	Bindings []workv1alpha2.Binding
	// Definition is the binding of the CustomResourceDefinition for the template's kind; nil where there is none.
	Definition workv1alpha2.Binding
	// Works of the binding; nil means that the binding's status is used instead.
	Works []*workv1alpha1.Work
	// Symptoms are what clusters report in which the template is not healthy, by
	// cluster. Clusters that were not asked are missing.
	Symptoms map[string]symptom.Symptom
	// Unread lists what could not be read, so that it is not taken for missing.
	Unread []Unread
	Skip   propagation.SkipRules
	// Priorities are the values of the PriorityClasses, by name.
	Priorities map[string]int32
	// Scheduling are the options of the scheduler.
	Scheduling placement.Options
	// Interpreter knows the kinds; nil means the native one.
	Interpreter *interpreter.Interpreter
	// Now is the time of the explanation.
	Now time.Time
}

// Unread is a kind of input that could not be read.
type Unread struct {
	// What is one of UnreadPolicies, UnreadClusters, …
	What string
	// Text names it for users, such as "the clusters".
	Text string
}

// Kinds of input that may be unread.
const (
	UnreadPolicies  = "policies"
	UnreadOverrides = "overrides"
	UnreadClusters  = "clusters"
	UnreadBinding   = "binding"
	UnreadPeers     = "bindings"
	UnreadWorks     = "works"
	// UnreadReports are what clusters report: nothing is said of delivery.
	UnreadReports = "reports"
	// UnreadDefinition is the binding of the kind's CustomResourceDefinition.
	UnreadDefinition = "definition"
	// UnreadPriorities are PriorityClasses.
	UnreadPriorities = "priorities"
	// UnreadCustomizations are ResourceInterpreterCustomizations.
	UnreadCustomizations = "customizations"
)

// Explain explains why the template runs where it runs.
func Explain(in Input) Explanation {
	if in.Template == nil || in.Template.Object == nil {
		in.Template = &unstructured.Unstructured{Object: map[string]any{}}
	}
	if in.Interpreter == nil {
		in.Interpreter = interpreter.Native()
	}
	x := &explainer{in: in, snap: placement.NewSnapshot(in.Clusters).Arriving(in.Definition, &workv1alpha2.ObjectReference{
		APIVersion: in.Template.GetAPIVersion(), Kind: in.Template.GetKind(),
	})}
	x.resource()
	x.taken()
	x.unread()
	x.policies()
	x.problems = append(x.problems, strayed(x.in)...)
	x.problems = append(x.problems, misread(x.in, x.decision, x.out.Resource.String())...)
	x.place()
	x.overrides()
	x.deliver()
	x.out.Problems = x.problems.sorted()
	return x.out
}

// explainer collects an explanation.
type explainer struct {
	in   Input
	snap placement.Snapshot
	out  Explanation
	// problems that were found so far.
	problems problems
	// decision on which policy carries the template.
	decision propagation.Decision
	// plan is what the loops would make of the template now.
	plan plan.TemplatePlan
	// waits means that a Lazy policy waits for an edit of the template; binding is then what would follow from one.
	waits bool
	// binding is what the loops would decide upon: as the policy wants it, with
	// the present placement. Nil where there is nothing to place.
	binding workv1alpha2.Binding
	// works are the Works that should exist, given plan.
	works []plan.WorkPlan
}

func (x *explainer) resource() {
	r := selector.ResourceOf(x.in.Template)
	x.out = Explanation{
		APIVersion: APIVersion,
		Kind:       Kind,
		Resource: Resource{
			APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			Stored: x.in.Template.GetUID() != "",
		},
	}
	n, _, known, err := x.in.Interpreter.Replicas(x.in.Template)
	_, pending := kinds.Awaits(err)
	switch {
	case pending: // not a problem: the answer is awaited
	case err != nil:
		x.problems.add(Problem{
			Reason: ReasonInvalidTemplate, Message: "its replicas cannot be read: " + err.Error(),
			Next: "correct the template",
		})
	case known:
		x.out.Resource.Replicas = ptr.To(n)
	}
	if x.in.Template.GetDeletionTimestamp() != nil {
		x.problems.add(Problem{Reason: ReasonDeleting, Message: "it is being deleted: nothing about it is decided any more"})
	}
}

// taken ignores a binding that belongs to another template: binding names contain
// neither the API group nor upper case, so two templates may share one.
func (x *explainer) taken() {
	if x.in.Binding == nil {
		return
	}
	r, of := x.in.Template, x.in.Binding.BindingSpec().Resource
	group := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).GroupKind()
	if group == r.GroupVersionKind().GroupKind() && of.Namespace == r.GetNamespace() && of.Name == r.GetName() {
		return
	}
	x.problems.add(Problem{
		Reason:  ReasonBindingTaken,
		Message: fmt.Sprintf("the name of its binding, %s, is taken by %s %s %s", x.in.Binding.GetName(), of.APIVersion, of.Kind, of.Name),
		Next:    "rename one of the two",
	})
	x.in.Binding, x.in.Works = nil, nil
}

func (x *explainer) unread() {
	for _, u := range x.in.Unread {
		x.out.Unread = append(x.out.Unread, u.Text)
	}
}

// blind reports whether something of the kind could not be read.
func (in *Input) blind(what string) bool {
	return slices.ContainsFunc(in.Unread, func(u Unread) bool { return u.What == what })
}

// String returns the kind and the name, with the namespace where there is one.
func (r Resource) String() string {
	return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// hint returns the object for which commands are suggested.
func (r Resource) hint() hint.Object {
	return hint.Object{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}
