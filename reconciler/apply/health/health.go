package health

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Templates are the resource templates that somebody keeps a watch on.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Deps are what a Reader reads from.
type Deps struct {
	// Hub reads bindings, Works, policies and Clusters from a cache.
	Hub client.Reader
	// Live reads without a cache.
	Live client.Reader
	// Templates are read for Parts, and for Unheeded, which finds nothing without.
	Templates Templates
	// Skip says what is never propagated.
	Skip propagation.SkipRules
	// NoPreemption says that every claim is left to the policy that holds it.
	NoPreemption bool
}

// Reader judges health. It is safe for use by several goroutines.
type Reader struct {
	Deps
	expressions *expression.Compiler
	indexes     indexes
}

// New returns a Reader.
func New(deps Deps) *Reader {
	return &Reader{Deps: deps, expressions: expression.NewCompiler(expression.Limits{})}
}

// Request asks how objects fare.
type Request struct {
	Entries []inventory.Entry
	// Observed are the objects as they stand on the hub. Whoever asks may read
	// them.
	Observed map[inventory.ID]*unstructured.Unstructured
	// As reads the others; it is whoever asks, and learns nothing of what it may not
	// read.
	As client.Reader
	// Checks are expressions that judge kinds in place of the usual rules.
	Checks []kustomize.CustomHealthCheck
	// Applied asks only whether all is applied where it belongs, and not how it fares there.
	Applied bool
	// Runs says, with Applied, that what they replace runs Pods: a workload that no policy carries does not replace it.
	Runs bool
	// MaxUnreachable is of how many clusters nothing need be heard; see MaxUnreachableOf.
	MaxUnreachable intstr.IntOrString
	// At is the revision of which the health is asked for: Kustomizations that follow the same source are waited for
	// until they have tried it.
	At Revision
}

// Assessment is how objects fare.
type Assessment struct {
	// Verdicts are one per entry of the request, in their order.
	Verdicts []Verdict
	// Uncounted are the clusters that do not count in them, as nothing is heard of them, sorted.
	Uncounted []string
	// Absent names the clusters that what runs is meant for, too, and that are not in the fleet; empty for none.
	Absent string
	// Replaced says in which clusters the entries replace what left, as far as it was asked for.
	Replaced rollup.Replaced
}

// Assess judges the objects of a request. What a
// policy carries is judged by its members; anything else by its own status.
// Policies are read live: one that was applied a moment ago counts.
func (r *Reader) Assess(ctx context.Context, req Request) (Assessment, error) {
	rules, err := r.compile(ctx, req.Checks)
	if err != nil {
		return Assessment{}, err
	}
	policies, err := r.policies(ctx, r.Live)
	if err != nil {
		return Assessment{}, err
	}
	fleet, err := r.fleet(ctx)
	if err != nil {
		return Assessment{}, err
	}
	all := givenBy(ctx, r, policies, fleet)
	out := Assessment{Verdicts: make([]Verdict, len(req.Entries))}
	parts := make([]*rollup.Part, len(req.Entries))
	for i, e := range req.Entries {
		if out.Verdicts[i], parts[i], err = r.assess(ctx, req, e, all, rules); err != nil {
			return Assessment{}, err
		}
	}
	out.Uncounted, out.Absent = passed(parts, req.MaxUnreachable), rollup.Absent(parts)
	for i, p := range parts {
		if p == nil {
			out.Replaced.Add(out.Verdicts[i].State == rollup.Healthy)
			continue
		}
		out.Replaced.AddPart(*p)
		out.Verdicts[i].State, out.Verdicts[i].Reason = p.Worst(out.Uncounted)
	}
	return out, nil
}

// assess returns the verdict of an object, or, of one that a policy carries, how it fares in each cluster.
func (r *Reader) assess(ctx context.Context, req Request, e inventory.Entry, all given, rules checks) (Verdict, *rollup.Part, error) {
	v, obj := Verdict{ID: e.ID, State: rollup.Progressing}, req.Observed[e.ID]
	binding, err := r.binding(ctx, e.ID)
	if err != nil {
		return v, nil, err
	}
	// The binding is of the version that its policy was taken up with: of that one the rules
	// speak, and not of the one that the commit happens to be written in.
	want := e.GroupVersionKind()
	if binding != nil {
		want = bindings.TemplateOf(binding).GroupVersionKind
	}
	if obj == nil || obj.GroupVersionKind() != want {
		obj, err = read(ctx, req.As, want, e.ID)
		if apierrors.IsForbidden(err) {
			v.State, v.Reason, v.Denied = rollup.Failed, err.Error(), true
			return v, nil, nil
		}
		if err != nil {
			return v, nil, err
		}
	}
	if obj == nil {
		v.Reason = "does not exist"
		return v, nil, nil
	}
	uncarried := binding == nil && !all.policies.selects(resourceOf(obj))
	switch {
	case req.Applied && req.Runs && uncarried && inventory.IsWorkload(e.ID):
		v.Reason = NothingRuns
		return v, nil, nil
	case req.Applied && (uncarried || binding != nil && rollup.Released(binding)):
		v.State = rollup.Healthy // it is where it stays
		return v, nil, nil
	}
	if why := req.At.behind(obj); why != "" && !req.Applied {
		v.Reason = why
		return v, nil, nil
	}
	if rule := rules[want]; rule != nil && !req.Applied {
		v, err = byStatus(ctx, v, obj, rule.judge)
		return v, nil, err
	}
	switch {
	case binding != nil:
		part, err := r.partOf(ctx, obj, binding, all)
		part.Absent = absent(binding, all.names)
		if req.Applied {
			part = part.AsApplied()
		}
		return v, &part, err
	case propagation.WaitsForChange(obj):
		v.State, v.Reason = rollup.Healthy, "waits for its next change, as its policy is Lazy"
		return v, nil, nil
	case !uncarried:
		v.Reason = propagation.Awaits(obj)
		return v, nil, nil
	default:
		v, err = byStatus(ctx, v, obj, compute)
		switch {
		case v.State == rollup.Progressing && (inventory.IsWorkload(e.ID) || volumes.IsVolumeClaim(e.ID.GroupKind)):
			v.Reason = NothingRuns
		case v.State == rollup.Healthy && unserved(obj, e.ID):
			v.State, v.Reason = rollup.Progressing, NothingRuns
		}
		return v, nil, err
	}
}

// binding returns the binding of an object, nil if there is none.
func (r Deps) binding(ctx context.Context, id inventory.ID) (workv1alpha2.Binding, error) {
	b, found, err := bindings.Carrying(ctx, r.Hub, id.GroupKind, client.ObjectKey{Namespace: id.Namespace, Name: id.Name})
	if err != nil || !found {
		return nil, err
	}
	return b, nil
}

// works returns the Works of a binding in the clusters that should have one.
// They are shared: not to be changed.
func (r *Reader) works(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	works := []*workv1alpha1.Work{}
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		work, found, err := bindings.WorkIn(ctx, r.Hub, b, target.Name)
		if err != nil {
			return nil, err
		}
		if found {
			works = append(works, work)
		}
	}
	return works, nil
}

// read returns one object of the hub; nil if there is none, or no such kind.
func read(ctx context.Context, as client.Reader, gvk schema.GroupVersionKind, id inventory.ID) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err := as.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, obj)
	if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
		return nil, nil
	}
	if apierrors.IsForbidden(err) {
		return nil, err // says itself who may not read what
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", inventory.Describe(id), err)
	}
	return obj, nil
}

// unserved reports whether an object is a workload of a kind of others that nobody on the control plane has looked at, as it
// has no status: that says nothing by itself.
func unserved(obj *unstructured.Unstructured, id inventory.ID) bool {
	_, hasStatus := obj.Object["status"]
	return !hasStatus && strings.Contains(id.GroupKind.Group, ".") && inventory.IsWorkload(id)
}

// evaluator judges an object.
type evaluator func(context.Context, *unstructured.Unstructured) (*status.Result, error)

// byStatus judges an object by what its own status says.
func byStatus(ctx context.Context, v Verdict, obj *unstructured.Unstructured, evaluate evaluator) (Verdict, error) {
	result, err := evaluate(ctx, obj)
	var ends *loop.Error
	if errors.As(err, &ends) || ctx.Err() != nil {
		return v, err
	}
	if err != nil {
		v.Reason = err.Error()
		return v, nil
	}
	v.Reason = result.Message
	switch result.Status {
	case status.CurrentStatus:
		v.State, v.Reason = rollup.Healthy, ""
	case status.FailedStatus:
		v.State = rollup.Failed
	}
	if message, reason := unready(obj); v.State != rollup.Healthy && message != "" {
		v.Reason = message // says more than that it is not ready
		if v.Follows = reason == meta.DependencyNotReadyReason; reason == ReasonClusterSilent {
			v.State = rollup.Unknown
		}
	}
	return v, nil
}

// unready is what an object says of why it is not ready, empty for nothing, and for what reason if it is a Kustomization. One
// that hears nothing of a cluster says so, too: whoever waits for it does not hear of that either.
func unready(obj *unstructured.Unstructured) (message, reason string) {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		if fields["type"] != "Ready" {
			continue
		}
		if obj.GetKind() == kustomizev1.KustomizationKind {
			reason, _ = fields["reason"].(string)
		}
		if fields["status"] == "False" || fields["status"] == "Unknown" && reason == ReasonClusterSilent {
			message, _ = fields["message"].(string)
			return excerpt.Revisions(message), reason
		}
	}
	return "", ""
}

func compute(_ context.Context, obj *unstructured.Unstructured) (*status.Result, error) {
	return status.Compute(obj)
}
