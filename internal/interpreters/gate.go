package interpreters

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// gate is a layer before all others that answers, as long as it is closed, that
// answers are pending.
type gate struct{ open atomic.Bool }

// unready is when to ask again before customizations were read.
const unready = 50 * time.Millisecond

// Rules implements kinds.Layer.
func (g *gate) Rules(schema.GroupVersionKind) kinds.Rules {
	if g.open.Load() {
		return kinds.Rules{}
	}
	return closed
}

func wait() error {
	return &kinds.Pending{Of: "the control plane about customizations", After: unready}
}

// closed are the rules of a closed gate.
var closed = kinds.Rules{
	Replicas:     func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) { return 0, nil, wait() },
	Components:   func(kinds.Object) ([]workv1alpha2.Component, error) { return nil, wait() },
	Revise:       func(kinds.Object, int32) (kinds.Object, error) { return nil, wait() },
	Retain:       func(_, _ kinds.Object) (kinds.Object, error) { return nil, wait() },
	Reflect:      func(kinds.Object) (map[string]any, error) { return nil, wait() },
	Health:       func(kinds.Object) (bool, error) { return false, wait() },
	Aggregate:    func(kinds.Object, []workv1alpha2.AggregatedStatusItem) (map[string]any, error) { return nil, wait() },
	Dependencies: func(kinds.Object) ([]kinds.Dependency, error) { return nil, wait() },
}
