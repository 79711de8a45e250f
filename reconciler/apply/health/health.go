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

// Templates reads resource templates from the watches that other loops keep.
type Templates interface {
	Get(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
}

// Deps are what a Reader reads from.
type Deps struct {
	// Hub reads bindings, Works, policies and Clusters from a cache.
	Hub client.Reader
	// Live reads without a cache.
	Live client.Reader
	// Templates are read by Parts and by Unheeded, which finds nothing if it is nil.
	Templates Templates
	// Skip says what is never propagated.
	Skip propagation.SkipRules
	// NoPreemption says that no policy may take templates from another one that has claimed them.
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

// Request asks for the health of objects.
type Request struct {
	Entries []inventory.Entry
	// Observed are the objects as they are on the hub. The requester may read
	// them.
	Observed map[inventory.ID]*unstructured.Unstructured
	// As reads the other objects with the rights of the requester, which thus learns nothing of what
	// it may not read.
	As client.Reader
	// Checks are expressions that judge kinds in place of the usual rules.
	Checks []kustomize.CustomHealthCheck
	// Applied asks only whether all is applied where it belongs, and not whether it is healthy there.
	Applied bool
	// Runs says, with Applied, that the objects replace something that runs Pods: a workload that no policy
	// propagates does not replace it.
	Runs bool
	// MaxUnreachable is how many clusters may be silent without counting; see MaxUnreachableOf.
	MaxUnreachable intstr.IntOrString
	// Remote says that the objects are in a cluster outside of the fleet: each is judged by its own status. Observed and As are of
	// that cluster.
	Remote bool
	// Unchanged says that nothing was applied lately: policies are read from the cache.
	Unchanged bool
	// At is the revision whose health is asked for. Kustomizations that follow the same source are progressing until
	// they have tried it.
	At Revision
}

// Assessment is the health of the objects of a Request.
type Assessment struct {
	// Verdicts are one per entry of the request, in their order.
	Verdicts []Verdict
	// Uncounted are the silent clusters that do not count in the verdicts, sorted.
	Uncounted []string
	// Absent is a text about clusters that placements name and that are not in the fleet; empty for none.
	Absent string
	// Replaced says in which clusters the entries are there and so replace what left.
	Replaced rollup.Replaced
}

// Assess judges the objects of a request: an object that a policy propagates by its
// members, and any other by its own status. Policies are read without a cache, so that
// one that was applied a moment ago counts, unless the request is Unchanged.
func (r *Reader) Assess(ctx context.Context, req Request) (Assessment, error) {
	rules, err := r.compile(ctx, req.Checks)
	if err != nil {
		return Assessment{}, err
	}
	if req.Remote {
		return remote(ctx, req, rules)
	}
	from := r.Live
	if req.Unchanged {
		from = r.Hub
	}
	policies, err := r.policies(ctx, from)
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

// assess returns the verdict on an object. For one that has a binding it returns the part, its health in each
// cluster, and the caller completes the verdict from that.
func (r *Reader) assess(ctx context.Context, req Request, e inventory.Entry, all given, rules checks) (Verdict, *rollup.Part, error) {
	v, obj := Verdict{ID: e.ID, State: rollup.Progressing}, req.Observed[e.ID]
	binding, err := r.binding(ctx, e.ID)
	if err != nil {
		return v, nil, err
	}
	// The binding refers to the API version with which the policy was applied. Rules for health are of
	// that version, and not of the one that the manifest happens to use.
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
		v.State = rollup.Healthy // it belongs on the hub alone, or members keep it as it is
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

// works returns the Works of a binding in its target clusters, as far as there are any.
// They are the cache's own: do not change them.
func (r *Reader) works(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error) {
	works := []*workv1alpha1.Work{}
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		work, found, err := bindings.WorkIn(ctx, r.Hub, b, target.Name)
		if err != nil {
			return nil, err
		}
		if !found {
			if work, err = bindings.RecalledIn(ctx, r.Hub, b, target.Name); err != nil {
				return nil, err
			}
		}
		if work != nil {
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
		return nil, err // the server's text names the account and the object
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", inventory.Describe(id), err)
	}
	return obj, nil
}

// unserved reports whether an object is a workload of a third-party kind without a status. No controller on the control
// plane has seen it, and the usual rules take an object without a status as healthy.
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
		v.Reason = message // the object's own text says more than the generic one
		if v.Follows = reason == meta.DependencyNotReadyReason; reason == ReasonClusterSilent {
			v.State = rollup.Unknown
		}
	}
	return v, nil
}

// unready returns the message of an object's condition Ready if it is not ready, and for a Kustomization the reason,
// too. A Kustomization whose Ready is Unknown because a cluster is silent counts as well: for those that wait for it,
// health is then just as unknown.
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
