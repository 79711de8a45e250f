package interpreter

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// Interpreter answers from its layers. It may be shared.
type Interpreter struct{ layers []kinds.Layer }

// New returns an interpreter that asks the layers in the given order.
func New(layers ...kinds.Layer) *Interpreter { return &Interpreter{layers} }

// Native returns an interpreter that knows what is built in.
func Native() *Interpreter { return New(native.Table()) }

// find returns the rule that the first layer has for the kind of obj.
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
		own := *req // the message may be shown to others
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

// Retains reports whether Retain needs the member's object to answer for desired,
// whatever it is. Where it does, applying without it could reset what the member
// owns. An object that something scales in the member needs a look all the same:
// see rules.Scaled.
func (i *Interpreter) Retains(desired kinds.Object) bool {
	r, ok := find(i, desired, retention)
	return ok && (r.Retains == nil || r.Retains(desired))
}

// yieldsReplicas reports whether replicas are left to what scales the object in the
// member: where the kind has replicas, and the template does not insist on them.
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

// errNothing is the fault of a rule that should return an object.
var errNothing = errors.New("the rule returned no object")

func retention(r kinds.Rules) (kinds.Rules, bool) { return r, r.Retain != nil }

// ReflectStatus returns what is reported of the status of a member's object:
// all of it, where the kind has no rule; nil where there is none. One that waits is
// marked so: see workv1alpha2.StatusWaiting.
func (i *Interpreter) ReflectStatus(observed kinds.Object) (*runtime.RawExtension, error) {
	f, ok := find(i, observed, func(r kinds.Rules) (func(kinds.Object) (map[string]any, error), bool) {
		return r.Reflect, r.Reflect != nil
	})
	if !ok {
		f = rules.ReflectAll
	}
	status, err := f(observed)
	if err == nil && i.waits(observed) {
		status = marked(status)
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

// marked returns a copy of a status that says that its object waits.
func marked(status map[string]any) map[string]any {
	out := make(map[string]any, len(status)+1)
	maps.Copy(out, status)
	out[workv1alpha2.StatusWaiting] = true
	return out
}

// Health judges whether a member's object may stay where it is: unhealthy is what
// has failed, or what nobody takes care of. What is queued, starting or held is
// healthy: see Shown. Kinds without a rule are healthy once they exist; where the
// rule fails, health is unknown.
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

// Shown is Health for people and for commits: what is not yet as it should be is
// not healthy, whether or not it may stay.
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
// its clusters report. changed is false where it has it already, and for kinds
// whose statuses do not add up to one. With kinds.Pending comes, where there is
// one, the status that held a moment ago.
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

// meaningful returns v without what says nothing: null, zero, "", false and
// what is empty. Servers leave such fields out or write them, kind by kind.
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
// kinds of which nothing is known.
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
