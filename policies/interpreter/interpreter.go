package interpreter

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Interpreter knows what resources of each kind mean, from its layers of rules.
// It may be used by several goroutines.
type Interpreter struct{ layers []kinds.Layer }

// New returns an interpreter of the layers, the first of which goes before the
// others.
func New(layers ...kinds.Layer) *Interpreter { return &Interpreter{layers} }

// Native returns an interpreter with the rules for Kubernetes' own kinds.
func Native() *Interpreter { return New(native.Table()) }

// find returns the rule that the first layer has for the kind of obj; rule picks
// it, and false means that no layer has one.
func find[F any](i *Interpreter, obj kinds.Object, rule func(kinds.Rules) (F, bool)) (F, bool) {
	gvk := obj.GroupVersionKind()
	for _, l := range i.layers {
		if f, ok := rule(l.Rules(gvk)); ok {
			return f, true
		}
	}
	var none F
	return none, false
}

// Replicas returns how many replicas obj asks for and what one of them needs.
// known is false for kinds that have none.
func (i *Interpreter) Replicas(obj kinds.Object) (n int32, req *workv1alpha2.ReplicaRequirements, known bool, err error) {
	f, known := find(i, obj, func(r kinds.Rules) (func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error), bool) {
		return r.Replicas, r.Replicas != nil
	})
	if !known {
		return 0, nil, false, nil
	}
	n, req, err = f(obj)
	if req != nil && req.NodeClaim != nil && rules.AllowsAnyNode(req.NodeClaim) {
		own := *req // a copy, as the rule may share its value with others
		own.NodeClaim = nil
		req = &own
	}
	return n, req, true, wrap(obj, "replicas", err)
}

// Components returns the parts of an object that has several kinds of pods.
// known is false for kinds that have none.
func (i *Interpreter) Components(obj kinds.Object) (parts []workv1alpha2.Component, known bool, err error) {
	f, known := find(i, obj, func(r kinds.Rules) (func(kinds.Object) ([]workv1alpha2.Component, error), bool) {
		return r.Components, r.Components != nil
	})
	if !known {
		return nil, false, nil
	}
	parts, err = f(obj)
	for i := range parts {
		if req := parts[i].ReplicaRequirements; req != nil && req.NodeClaim != nil && rules.AllowsAnyNode(req.NodeClaim) {
			own := *req
			own.NodeClaim = nil
			parts = slices.Clone(parts)
			parts[i].ReplicaRequirements = &own
		}
	}
	return parts, true, wrap(obj, "components", err)
}

// Revise returns a copy of obj that asks for n replicas. known is false, and
// obj is returned as it is, for kinds whose replicas cannot be changed.
func (i *Interpreter) Revise(obj kinds.Object, n int32) (revised kinds.Object, known bool, err error) {
	f, known := find(i, obj, func(r kinds.Rules) (func(kinds.Object, int32) (kinds.Object, error), bool) {
		return r.Revise, r.Revise != nil
	})
	if !known {
		return obj, false, nil
	}
	revised, err = f(obj, n)
	if err == nil && revised == nil {
		err = errNothing
	}
	return revised, true, wrap(obj, "revise replicas", err)
}

// Retains reports whether Retain needs the member's object to answer for desired.
// Where it does, applying desired without Retain could reset what the member
// owns. Objects that something in the member scales need Retain even where this
// is false, which only the member's object shows: see rules.Scaled.
func (i *Interpreter) Retains(desired kinds.Object) bool {
	r, ok := find(i, desired, retention)
	return ok && (r.Retains == nil || r.Retains(desired))
}

// yieldsReplicas reports whether replicas are left to what scales the object in
// the member: the kind has replicas, and the template does not insist on its own.
func (i *Interpreter) yieldsReplicas(desired kinds.Object) bool {
	_, known := find(i, desired, func(r kinds.Rules) (struct{}, bool) { return struct{}{}, r.Replicas != nil || r.Revise != nil })
	return known && !rules.ForcesReplicas(desired) && rules.Value(desired.Object, "spec", "replicas") != nil
}

// Retain returns what should be applied to the member: desired without the
// fields that the member owns. With server-side apply, fields that are not
// applied keep the member's value. A nil observed means that the object does
// not exist yet: all of desired is applied. Replicas that something in the
// member scales are the member's for every kind.
func (i *Interpreter) Retain(desired, observed kinds.Object) (kinds.Object, error) {
	if observed == nil {
		return desired, nil
	}
	out := desired
	if r, ok := find(i, desired, retention); ok {
		var err error
		if out, err = r.Retain(desired, observed); err == nil && out == nil {
			err = errNothing
		}
		if err != nil {
			return nil, wrap(desired, "retain", err)
		}
	}
	if rules.Scaled(observed) && i.yieldsReplicas(out) {
		out = rules.Without(out, "spec", "replicas")
	}
	return out, nil
}

// errNothing is the error of a rule that returned nil instead of an object.
var errNothing = errors.New("the rule returned no object")

func retention(r kinds.Rules) (kinds.Rules, bool) { return r, r.Retain != nil }

// ReflectStatus returns what is reported of the status of a member's object, as
// JSON: all of it where the kind has no rule; nil where there is no status. The
// status of an object that waits gets the field workv1alpha2.StatusWaiting.
func (i *Interpreter) ReflectStatus(observed kinds.Object) (*runtime.RawExtension, error) {
	f, ok := find(i, observed, func(r kinds.Rules) (func(kinds.Object) (map[string]any, error), bool) {
		return r.Reflect, r.Reflect != nil
	})
	if !ok {
		f = rules.ReflectAll
	}
	status, err := f(observed)
	if err == nil && i.waits(observed) {
		status = withWaiting(status)
	}
	if err != nil || status == nil {
		return nil, wrap(observed, "reflect status", err)
	}
	data, err := json.Marshal(status)
	if err != nil {
		return nil, wrap(observed, "reflect status", err)
	}
	return &runtime.RawExtension{Raw: data}, nil
}

// withWaiting returns a copy of a status with the field that shows that its object
// waits.
func withWaiting(status map[string]any) map[string]any {
	out := make(map[string]any, len(status)+1)
	maps.Copy(out, status)
	out[workv1alpha2.StatusWaiting] = true
	return out
}

// Health judges whether a member's object may stay in its cluster. It is
// unhealthy where it has failed, or nothing there takes care of it. An object
// that is queued, starting or suspended is healthy here; see Shown for the
// difference. A kind without a rule is healthy once it exists. Where the rule
// fails, health is unknown.
func (i *Interpreter) Health(observed kinds.Object) (workv1alpha2.ResourceHealth, error) {
	r, ok := find(i, observed, judgement)
	if !ok {
		return workv1alpha2.ResourceHealthy, nil
	}
	healthy, err := r.Health(observed)
	switch {
	case err != nil:
		return workv1alpha2.ResourceUnknown, wrap(observed, "health", err)
	case healthy:
		return workv1alpha2.ResourceHealthy, nil
	default:
		return workv1alpha2.ResourceUnhealthy, nil
	}
}

// Shown is Health as people and commit statuses see it: an object that is not yet
// what it should be is unhealthy, even where it may stay.
func (i *Interpreter) Shown(observed kinds.Object) (workv1alpha2.ResourceHealth, error) {
	health, err := i.Health(observed)
	if health == workv1alpha2.ResourceHealthy && i.waits(observed) {
		return workv1alpha2.ResourceUnhealthy, nil
	}
	return health, err
}

func (i *Interpreter) waits(observed kinds.Object) bool {
	r, ok := find(i, observed, judgement)
	return ok && r.Waits != nil && r.Waits(observed)
}

func judgement(r kinds.Rules) (kinds.Rules, bool) { return r, r.Health != nil }

// AggregateStatus returns the status that the template should have, given what
// its clusters report. changed is false where the template has that status
// already, and for kinds that have no rule for it. With an error that is a
// kinds.Pending, the rule may return the status that it gave last.
func (i *Interpreter) AggregateStatus(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (status map[string]any, changed bool, err error) {
	f, ok := find(i, template, func(r kinds.Rules) (func(kinds.Object, []workv1alpha2.AggregatedStatusItem) (map[string]any, error), bool) {
		return r.Aggregate, r.Aggregate != nil
	})
	current, _ := template.Object["status"].(map[string]any)
	if !ok {
		return current, false, nil
	}
	status, err = f(template, items)
	if err != nil {
		err = wrap(template, "aggregate status", err)
	}
	if _, awaits := kinds.Awaits(err); err != nil && (status == nil || !awaits) {
		return nil, false, err
	}
	return status, !reflect.DeepEqual(meaningful(current), meaningful(status)), err
}

// Unheard returns the items as AggregateStatus is to be given them where nothing is
// heard any more of some clusters, by name, since a time. Only what is not known of
// them any more is left out, and only for kinds that have a rule for it. What came in
// stays as it is. What cannot be read is passed on: AggregateStatus fails for it.
func (i *Interpreter) Unheard(template kinds.Object, items []workv1alpha2.AggregatedStatusItem, silent map[string]time.Time) []workv1alpha2.AggregatedStatusItem {
	r, ok := find(i, template, addition)
	if len(silent) == 0 || !ok || r.Unheard == nil {
		return items
	}
	out := slices.Clone(items)
	for n := range out {
		since, unheard := silent[out[n].ClusterName]
		if !unheard || out[n].Status == nil {
			continue
		}
		part, err := rules.Parts(out[n : n+1])
		if err != nil || part[0].Status == nil {
			continue
		}
		if data, err := json.Marshal(r.Unheard(part[0].Status, since)); err == nil {
			out[n].Status = &runtime.RawExtension{Raw: data}
		}
	}
	return out
}

// KnowsSilence reports whether Unheard may leave out anything for a kind.
func (i *Interpreter) KnowsSilence(gvk schema.GroupVersionKind) bool {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(gvk)
	r, ok := find(i, of, addition)
	return ok && r.Unheard != nil
}

func addition(r kinds.Rules) (kinds.Rules, bool) { return r, r.Aggregate != nil }

// meaningful returns v without null, zero, "", false and what is empty. API
// servers write such fields for some kinds and leave them out for others, so they
// are no difference.
func meaningful(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if m := meaningful(e); m != nil {
				out[k] = m
			}
		}
		if len(out) > 0 {
			return out
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = meaningful(v[i])
		}
		if len(out) > 0 {
			return out
		}
	case string:
		if v != "" {
			return v
		}
	case int64:
		if v != 0 {
			return v
		}
	case float64:
		if v != 0 {
			return v
		}
	case bool:
		if v {
			return v
		}
	default:
		return v
	}
	return nil
}

// Dependencies returns what obj cannot run without, sorted. known is false for
// kinds without a rule.
func (i *Interpreter) Dependencies(obj kinds.Object) (deps []kinds.Dependency, known bool, err error) {
	f, known := find(i, obj, func(r kinds.Rules) (func(kinds.Object) ([]kinds.Dependency, error), bool) {
		return r.Dependencies, r.Dependencies != nil
	})
	if !known {
		return nil, false, nil
	}
	deps, err = f(obj)
	return deps, true, wrap(obj, "dependencies", err)
}

func wrap(obj kinds.Object, operation string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Operation: operation, Kind: obj.GetKind(), Name: obj.GetName(), Err: err}
}
