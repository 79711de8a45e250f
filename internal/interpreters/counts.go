package interpreters

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/internal/stagemetrics"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// maxKinds is how many kinds are counted by name; others are counted together.
const maxKinds = 256

// counts measures answers, by layer, operation and kind.
type counts struct {
	clock    clock.PassiveClock
	seconds  *prometheus.HistogramVec // nil counts nothing
	failures *prometheus.CounterVec

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]string
}

func newCounts(registry prometheus.Registerer, c clock.PassiveClock) *counts {
	out := &counts{clock: c, kinds: map[schema.GroupVersionKind]string{}}
	if registry == nil {
		return out
	}
	labels := []string{"layer", "operation", "kind"}
	out.seconds = stagemetrics.Registered(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "flotilla_interpreter_seconds",
		Help:    "How long answers about resources take, by layer, operation and kind",
		Buckets: []float64{1e-5, 5e-5, 2.5e-4, 1e-3, 1e-2, 1e-1, 1, 10},
	}, labels))
	out.failures = stagemetrics.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_interpreter_failures_total",
		Help: "How many answers about resources failed, by layer, operation and kind",
	}, labels))
	return out
}

// countCalls registers the metric of how many questions are on their way to webhooks.
func countCalls(registry prometheus.Registerer, webhooks *webhook.Webhooks) {
	stagemetrics.Replace(registry, stagemetrics.NewWaits(prometheus.GaugeOpts{
		Name: "flotilla_interpreter_webhook_calls", Help: "Questions to webhooks, by state: waiting to be sent, or flying",
	}, "state", func() map[string]int {
		waiting, flying := webhooks.Calls()
		return map[string]int{"waiting": waiting, "flying": flying}
	}))
}

// name returns what a kind is counted as.
func (c *counts) name(gvk schema.GroupVersionKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, known := c.kinds[gvk]
	if !known {
		name = "other"
		if len(c.kinds) < maxKinds {
			name = gvk.GroupKind().String()
			c.kinds[gvk] = name
		}
	}
	return name
}

// meter counts the answers of one rule, and knows when to ask it again. Its series,
// and the name of its kind, are taken with the first answer.
type meter struct {
	clock    clock.PassiveClock
	cooldown cooldown
	labels   func() []string
	seconds  func() prometheus.Observer
	failures *prometheus.CounterVec
}

func (c *counts) meter(layer, operation string, gvk schema.GroupVersionKind) *meter {
	labels := sync.OnceValue(func() []string { return []string{layer, operation, c.name(gvk)} })
	return &meter{
		clock:    c.clock,
		labels:   labels,
		seconds:  sync.OnceValue(func() prometheus.Observer { return c.seconds.WithLabelValues(labels()...) }),
		failures: c.failures,
	}
}

// took notes an answer, and returns its error along with when to ask again.
func (m *meter) took(since time.Time, err error) error {
	now := m.clock.Now()
	m.add(now.Sub(since), err)
	return m.cooldown.spread(err, now)
}

func (m *meter) add(took time.Duration, err error) {
	if m.failures == nil {
		return
	}
	m.seconds().Observe(took.Seconds())
	if _, awaits := kinds.Awaits(err); err != nil && !awaits {
		m.failures.WithLabelValues(m.labels()...).Inc()
	}
}

// called counts calls of webhooks, and passes them on to the callback that was set before.
func (c *counts) called(also func(webhook.Call)) func(webhook.Call) {
	return func(call webhook.Call) {
		if c.seconds != nil {
			c.meter("webhook", operationNames[string(call.Operation)], call.Kind).add(call.Took, call.Err)
		}
		if also != nil {
			also(call)
		}
	}
}

// operationNames are the operations of webhooks as they are counted.
var operationNames = map[string]string{
	"InterpretReplica": "replicas", "InterpretComponent": "components", "ReviseReplica": "revise", "Retain": "retain",
	"InterpretStatus": "status", "InterpretHealth": "health", "AggregateStatus": "aggregate", "InterpretDependency": "dependencies",
}

// table returns rules that are counted and paced.
func (c *counts) table(layer string, rules kinds.Table) kinds.Table {
	out := make(kinds.Table, len(rules))
	for gvk, r := range rules {
		out[gvk] = c.counted(layer, gvk, r)
	}
	return out
}

// counted wraps the rules of one kind.
func (c *counts) counted(layer string, gvk schema.GroupVersionKind, r kinds.Rules) kinds.Rules {
	meter := func(operation string) *meter { return c.meter(layer, operation, gvk) }
	if f := r.Replicas; f != nil {
		m := meter("replicas")
		r.Replicas = func(obj kinds.Object) (n int32, req *workv1alpha2.ReplicaRequirements, err error) {
			defer func(at time.Time) { err = m.took(at, err) }(m.clock.Now())
			return f(obj)
		}
	}
	if f := r.Revise; f != nil {
		m := meter("revise")
		r.Revise = func(obj kinds.Object, n int32) (out kinds.Object, err error) {
			defer func(at time.Time) { err = m.took(at, err) }(m.clock.Now())
			return f(obj, n)
		}
	}
	if f := r.Retain; f != nil {
		m := meter("retain")
		r.Retain = func(desired, observed kinds.Object) (out kinds.Object, err error) {
			defer func(at time.Time) { err = m.took(at, err) }(m.clock.Now())
			return f(desired, observed)
		}
	}
	if f := r.Aggregate; f != nil {
		m := meter("aggregate")
		r.Aggregate = func(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (out map[string]any, err error) {
			defer func(at time.Time) { err = m.took(at, err) }(m.clock.Now())
			return f(template, items)
		}
	}
	r.Components = counted(meter("components"), r.Components)
	r.Reflect = counted(meter("status"), r.Reflect)
	r.Health = counted(meter("health"), r.Health)
	r.Dependencies = counted(meter("dependencies"), r.Dependencies)
	return r
}

// counted wraps a rule that makes one value of one object.
func counted[T any](m *meter, f func(kinds.Object) (T, error)) func(kinds.Object) (T, error) {
	if f == nil {
		return nil
	}
	return func(obj kinds.Object) (out T, err error) {
		defer func(at time.Time) { err = m.took(at, err) }(m.clock.Now())
		return f(obj)
	}
}
