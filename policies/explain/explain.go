package explain

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Input is what an explanation is made from. Only Template must be there; what
// is missing counts as not existing. Nothing in it is changed.
type Input struct {
	// Template with its metadata. One without a UID is not on the control plane.
	Template *unstructured.Unstructured
	// Binding of the template; nil where it has none.
	Binding   workv1alpha2.Binding
	Policies  []policyv1alpha1.Policy
	Overrides []policyv1alpha1.Override
	Clusters  []*clusterv1alpha1.Cluster
	// Bindings of the namespace, for workload affinity; Binding may be among them.
	Bindings []workv1alpha2.Binding
	// Works of the binding. Nil: the binding's status tells.
	Works []*workv1alpha1.Work
	// Unread says what may be missing in the lists, in words: "clusters: …".
	Unread []string
	Skip   propagation.SkipRules
	// NoPreemption says that policies take no templates from each other.
	NoPreemption bool
	// Scheduling are the options of the scheduler.
	Scheduling placement.Options
	// Interpreter is the native one if nil.
	Interpreter *interpreter.Interpreter
	// Now is when it is asked.
	Now time.Time
}

// Explain says why the template runs where it runs.
func Explain(in Input) Explanation {
	if in.Template == nil || in.Template.Object == nil {
		in.Template = &unstructured.Unstructured{Object: map[string]any{}}
	}
	if in.Interpreter == nil {
		in.Interpreter = interpreter.Native()
	}
	x := &explainer{in: in, snap: placement.NewSnapshot(in.Clusters)}
	x.resource()
	x.unread()
	x.policies()
	x.place()
	x.overrides()
	x.deliver()
	x.sortProblems()
	return x.out
}

// explainer collects an explanation.
type explainer struct {
	in   Input
	snap placement.Snapshot
	out  Explanation
	// decision on who carries it.
	decision propagation.Decision
	// plan is what the loops would make of it now.
	plan plan.TemplatePlan
	// binding as it is before a new placement: what the loops decide upon. Nil
	// where there is nothing to place.
	binding workv1alpha2.Binding
	// works that should be there, given plan.
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
	switch {
	case err != nil:
		x.problem(Problem{
			Reason: ReasonInvalidTemplate, Message: "its replicas cannot be read: " + err.Error(),
			Next: "correct the template",
		})
	case known:
		x.out.Resource.Replicas = ptr.To(n)
	}
	if x.in.Template.GetDeletionTimestamp() != nil {
		x.problem(Problem{Reason: ReasonDeleting, Message: "it is being deleted: nothing about it is decided any more"})
	}
}

func (x *explainer) problem(p Problem) { x.out.Problems = append(x.out.Problems, p) }

func (x *explainer) unread() {
	for _, what := range x.in.Unread {
		x.problem(Problem{
			Reason:  ReasonNotRead,
			Message: "what is said here may be wrong, for it was not allowed to read " + what,
			Next:    "ask for the right to get and list it",
		})
	}
}

// name of the template, for texts.
func (r Resource) String() string {
	return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}
