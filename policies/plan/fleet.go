package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// FleetInput is everything that decides what clusters hold.
type FleetInput struct {
	Templates []*unstructured.Unstructured
	Policies  []policyv1alpha1.Policy
	Overrides []policyv1alpha1.Override
	Clusters  []*clusterv1alpha1.Cluster
	// Whole says that Templates are complete. Others that bindings name do not need
	// anything any more; they still do otherwise.
	Whole bool
	// Bindings of today; templates without one are placed for the first time.
	Bindings []workv1alpha2.Binding
	Skip     propagation.SkipRules
	// NoPreemption leaves every claim to the policy that holds it.
	NoPreemption bool
	// Priorities are the values of the PriorityClasses there are, by name.
	Priorities map[string]int32
	// Quotas hold the overrides of their namespaces; none where they hold nothing.
	Quotas      []*policyv1alpha1.FederatedResourceQuota
	Scheduling  placement.Options
	Interpreter *interpreter.Interpreter
	// Now dates new decisions.
	Now time.Time
	// Kept are the Works of an earlier plan; nil for none.
	Kept *Kept
	// Reserves has what is placed anew take room from what is decided after it, and what matters more decided first. It goes where
	// there is room by what clusters report now as well, and not only by what was answered about them before.
	Reserves bool
	// Reported are clusters of which what they report counts, whatever was answered about them before.
	Reported []string
}

// TemplatePlan is the plan of one template.
type TemplatePlan struct {
	// Resource names the template.
	Resource selector.Resource
	// Outcome is what happens to the template and its claim.
	Outcome propagation.Outcome
	// Policy that carries it, or will once its overrides exist; nil where none does.
	Policy policyv1alpha1.Policy
	// Why explains, as text, how it came to its policy or why it has none.
	Why string
	// Activation reports whether a Lazy policy acts on the template now, and what the
	// template is to be marked with. Where it waits, Works is empty: what clusters
	// hold stays.
	Activation propagation.Activation
	// Binding to be written; nil where no policy carries the template, or the
	// one that does waits, and no other template needs it.
	Binding workv1alpha2.Binding
	// Placed is why its placement was decided anew; empty where it was kept.
	Placed string
	// NeededBy are the bindings of templates that refer to this one and whose
	// policies take along what they need: Binding runs where these run, besides
	// where its own policy has it. Without a policy it is attached.
	NeededBy []dependency.Ref
	// Dropped: its binding is to be deleted, as nobody needs it any more.
	Dropped bool
	// Works by cluster, sorted.
	Works []WorkPlan
	// Err is why the template is not placed, or its Works are not made.
	Err error
}

// Fleet returns the plan of every template, sorted by namespace, name and
// kind. The inputs are not changed.
func Fleet(in FleetInput) []TemplatePlan {
	snap := placement.NewSnapshot(in.Clusters)
	now := newBound(in.Bindings)
	directory := propagation.NewDirectory(identified(in.Policies), in.Overrides, in.Skip)
	plans := make([]TemplatePlan, len(in.Templates))
	works := make([]*WorksInput, len(in.Templates))
	for _, i := range in.order(now) {
		c := directory.Case(in.Templates[i])
		c.NoPreemption = in.NoPreemption
		plans[i], works[i] = in.plan(c, now, snap)
	}
	in.render(plans, works)
	in.along(plans, now, snap)
	slices.SortStableFunc(plans, func(a, b TemplatePlan) int {
		return cmp.Or(cmp.Compare(a.Resource.Namespace, b.Resource.Namespace), cmp.Compare(a.Resource.Name, b.Resource.Name),
			cmp.Compare(a.Resource.Kind, b.Resource.Kind), cmp.Compare(a.Resource.APIVersion, b.Resource.APIVersion))
	})
	return plans
}

// identified gives each policy that is not stored yet a permanent ID.
func identified(policies []policyv1alpha1.Policy) []policyv1alpha1.Policy {
	out := slices.Clone(policies)
	for i, p := range out {
		if propagation.RefOf(p).ID != "" {
			continue
		}
		p = p.DeepCopyObject().(policyv1alpha1.Policy)
		labels := maps.Clone(p.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels[propagation.IDLabel(p)] = uuid.NewSHA1(uuid.NameSpaceOID, []byte("policy/"+p.GetNamespace()+"/"+p.GetName())).String()
		p.SetLabels(labels)
		out[i] = p
	}
	return out
}

// bound are all bindings, as planned so far.
type bound struct {
	all []workv1alpha2.Binding
	at  map[bindingKey]int
	// loads are what was placed anew takes of clusters; see FleetInput.Reserves.
	loads map[string]*estimate.Load
}

// bindingKey identifies a template of which there is one binding.
type bindingKey struct{ namespace, name string }

func newBound(bindings []workv1alpha2.Binding) *bound {
	b := &bound{all: slices.Clone(bindings), at: map[bindingKey]int{}, loads: map[string]*estimate.Load{}}
	for i := range b.all {
		b.at[bindingKey{b.all[i].GetNamespace(), b.all[i].GetName()}] = i
	}
	return b
}

// of returns the binding of a template; nil if it has none.
func (b *bound) of(template *unstructured.Unstructured) workv1alpha2.Binding {
	if current := b.byName(template); current != nil && isFor(current, template) {
		return current
	}
	return nil
}

// taken returns an error where the name of a template's binding is taken by
// another template: names carry neither API group nor upper case.
func (b *bound) taken(template *unstructured.Unstructured) error {
	current := b.byName(template)
	if current == nil || isFor(current, template) {
		return nil
	}
	owner := current.BindingSpec().Resource
	return fmt.Errorf("the name of its binding, %s, is taken by %s %s %s: rename one of the two",
		strings.TrimPrefix(current.GetNamespace()+"/"+current.GetName(), "/"), owner.APIVersion, owner.Kind, owner.Name)
}

func (b *bound) byName(template *unstructured.Unstructured) workv1alpha2.Binding {
	i, has := b.at[bindingKey{template.GetNamespace(), workv1alpha2.BindingName(template.GetKind(), template.GetName())}]
	if !has {
		return nil
	}
	return b.all[i]
}

// isFor reports whether a binding is that of a template, in whatever version.
func isFor(b workv1alpha2.Binding, template *unstructured.Unstructured) bool {
	ref := b.BindingSpec().Resource
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == template.GroupVersionKind().GroupKind() &&
		ref.Namespace == template.GetNamespace() && ref.Name == template.GetName()
}

// put records a planned binding.
func (b *bound) put(planned workv1alpha2.Binding) {
	key := bindingKey{planned.GetNamespace(), planned.GetName()}
	if i, has := b.at[key]; has {
		b.all[i] = planned
		return
	}
	b.at[key] = len(b.all)
	b.all = append(b.all, planned)
}

// render makes the Works of all plans that have an input for them, side by side: placement has been decided, one after
// the other, and they depend on nothing else.
func (in *FleetInput) render(plans []TemplatePlan, inputs []*WorksInput) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, of := range inputs {
		if of == nil {
			continue
		}
		group.Go(func() error {
			works, err := in.Kept.Works(*of)
			if err != nil {
				plans[i].Err = err
			}
			plans[i].Works = works
			return nil
		})
	}
	_ = group.Wait() // errors are the plans'
}

// plan returns the plan of a template without its Works, and what these are made from; nil where none are to be made.
func (in *FleetInput) plan(c propagation.Case, now *bound, snap placement.Snapshot) (TemplatePlan, *WorksInput) {
	template := c.Template
	out := TemplatePlan{Resource: selector.ResourceOf(template)}
	choice := propagation.Decide(c)
	out.Outcome, out.Why = choice.Outcome, choice.Why
	switch choice.Outcome {
	case propagation.Carried:
		out.Policy = choice.Policy
	case propagation.Waiting:
		out.Policy = choice.Policy
		out.Err = fmt.Errorf("waiting for dependent overrides: %s", strings.Join(choice.Missing, ", "))
		return out, nil
	default:
		return out, nil
	}
	if out.Err = now.taken(template); out.Err != nil {
		return out, nil
	}
	claimed := template.DeepCopy()
	current := now.of(template)
	if out.Binding, out.Err = in.activate(&out, claimed, current); out.Err != nil || out.Binding == nil {
		return out, nil
	}
	// A definition that is carried along would be served there by the time that this runs.
	snap = snap.Arriving(in.definition(template, now), &out.Binding.BindingSpec().Resource)
	in.place(&out, current, now, snap)
	now.put(out.Binding)
	// Under a Lazy policy the binding stays that of the version before, and so do its Works.
	if digest, err := propagation.Digest(claimed); err != nil || digest != out.Binding.GetAnnotations()[propagation.DigestAnnotation] {
		out.Err = errors.Join(out.Err, err)
		return out, nil
	}
	return out, &WorksInput{
		Binding: out.Binding, Template: claimed, Cluster: snap.Cluster, Overrides: in.Overrides, Interpreter: in.Interpreter,
		Quotas: QuotasOf(in.Quotas, claimed.GetNamespace()),
	}
}

// activate claims the template for the policy of out, and returns its binding.
func (in *FleetInput) activate(out *TemplatePlan, template *unstructured.Unstructured, current workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	before, err := propagation.Digest(template)
	if err != nil {
		return nil, err
	}
	if out.Activation, err = propagation.Activate(template, out.Policy, current); err != nil {
		return nil, err
	}
	out.Activation.Claim(out.Policy).Set(template)
	if !out.Activation.Waits {
		return in.bind(template, out.Policy, current, out.Activation.Edition)
	}
	if current == nil {
		out.Why += ", waits for a change of the template"
		return nil, nil
	}
	after, err := propagation.Digest(template)
	b := copyOrNew(template, current)
	propagation.Follow(b, out.Policy, before, after)
	return b, err
}

// bind returns the binding of a claimed template, before its placement.
func (in *FleetInput) bind(template *unstructured.Unstructured, policy policyv1alpha1.Policy, current workv1alpha2.Binding, edition string) (workv1alpha2.Binding, error) {
	digest, err := propagation.Digest(template)
	if err != nil {
		return nil, err
	}
	b := copyOrNew(template, current)
	var spec *workv1alpha2.ResourceBindingSpec
	if current != nil {
		spec = b.BindingSpec()
	}
	t := propagation.Template{Object: template, Digest: digest, Seen: b.GetAnnotations()[propagation.DigestAnnotation]}
	if err := in.size(&t); err != nil {
		return nil, err
	}
	if class := policy.PropagationSpec().SchedulePriority; class != nil {
		value, has := in.Priorities[class.PriorityClassName]
		if !has {
			return nil, propagation.NoPriorityClass(policy)
		}
		t.Priority = &value
	}
	*b.BindingSpec() = propagation.BindingSpec(t, policy, spec)
	propagation.ClaimOf(policy).Set(b)
	propagation.Note(b, digest, edition)
	return b, nil
}

// size fills in what the template asks for: its parts if it has several, unless
// those are off, and its replicas otherwise.
func (in *FleetInput) size(t *propagation.Template) error {
	if !in.Scheduling.NoComponents {
		parts, _, err := in.Interpreter.Components(t.Object)
		if err != nil {
			return err
		}
		if len(parts) > 0 {
			t.Components = parts
			return nil
		}
	}
	var err error
	t.Replicas, t.Requirements, _, err = in.Interpreter.Replicas(t.Object)
	return err
}

// copyOrNew returns a copy of the current binding, or a new one with a
// permanent id that is the same each time; the one that is stored gets its own.
func copyOrNew(template *unstructured.Unstructured, current workv1alpha2.Binding) workv1alpha2.Binding {
	switch b := current.(type) {
	case *workv1alpha2.ResourceBinding:
		return b.DeepCopy()
	case *workv1alpha2.ClusterResourceBinding:
		return b.DeepCopy()
	}
	meta := metav1.ObjectMeta{
		Namespace: template.GetNamespace(),
		Name:      workv1alpha2.BindingName(template.GetKind(), template.GetName()),
		Labels:    map[string]string{},
	}
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte("binding/"+meta.Namespace+"/"+meta.Name)).String()
	if meta.Namespace == "" {
		meta.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] = id
		return &workv1alpha2.ClusterResourceBinding{ObjectMeta: meta}
	}
	meta.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = id
	return &workv1alpha2.ResourceBinding{ObjectMeta: meta}
}
