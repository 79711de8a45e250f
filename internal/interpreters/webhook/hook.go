package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Bounds of how long one answer may take, in seconds.
const minTimeout, maxTimeout, defaultTimeout = 1, 30, 10

// hook is one webhook as it was configured at one time.
type hook struct {
	// id distinguishes configurations in time, too: an edit makes others.
	id string
	// name of the configuration and the webhook, for people and for the order.
	name    string
	rules   []configv1alpha1.RuleWithOperations
	timeout time.Duration
	url     string
	client  *http.Client
	// fault is why it cannot be asked at all.
	fault error

	// The rest belongs to the response cache and its lock.
	waiting      []*entry
	waitingBytes int64 // bytes of what waits
	flying       int
	gone         bool
}

// idOf returns what distinguishes a webhook from all others, and from itself
// before an edit.
func idOf(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, w *configv1alpha1.ResourceInterpreterWebhook) string {
	return fmt.Sprintf("%s/%s/%d/%s", c.Name, c.UID, c.Generation, w.Name)
}

func newHook(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, w *configv1alpha1.ResourceInterpreterWebhook, o Options) *hook {
	seconds := int32(defaultTimeout)
	if w.TimeoutSeconds != nil {
		seconds = min(max(*w.TimeoutSeconds, minTimeout), maxTimeout)
	}
	h := &hook{
		id:      idOf(c, w),
		name:    c.Name + "/" + w.Name,
		rules:   w.Rules,
		timeout: time.Duration(seconds) * time.Second,
	}
	if !slices.Contains(w.InterpreterContextVersions, configv1alpha1.GroupVersion.Version) {
		h.fault = fmt.Errorf("does not understand version %s of questions", configv1alpha1.GroupVersion.Version)
		return h
	}
	h.url, h.client, h.fault = connection(&w.ClientConfig, o)
	return h
}

// answers reports whether the hook is to be asked about a kind.
func (h *hook) answers(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return ruled(h.rules, gvk, op)
}

func ruled(rules []configv1alpha1.RuleWithOperations, gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return slices.ContainsFunc(rules, func(r configv1alpha1.RuleWithOperations) bool {
		return has(r.Operations, op) && names(&r.Rule, gvk)
	})
}

// Asked returns the name of the webhook that configurations have asked about a kind; empty
// for none. Of several it is the first by name.
func Asked(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration, gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) string {
	var names []string
	for _, c := range configurations {
		for i := range c.Webhooks {
			if ruled(c.Webhooks[i].Rules, gvk, op) {
				names = append(names, c.Webhooks[i].Name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// concerns reports whether the hook is asked anything about a kind.
func (h *hook) concerns(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(h.rules, func(r configv1alpha1.RuleWithOperations) bool { return names(&r.Rule, gvk) })
}

func names(r *configv1alpha1.Rule, gvk schema.GroupVersionKind) bool {
	return has(r.APIGroups, gvk.Group) && has(r.APIVersions, gvk.Version) && has(r.Kinds, gvk.Kind)
}

// has reports whether list names v, or all there is.
func has[T ~string](list []T, v T) bool {
	return slices.Contains(list, v) || slices.Contains(list, "*")
}

// set is the webhooks of one time, in the order in which they are asked.
type set struct {
	hooks []*hook
	rules sync.Map // kinds.Rules by schema.GroupVersionKind
}

// compile makes the webhooks of configurations, and takes over those of before
// that are still the same.
func compile(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration, before *set, o Options) *set {
	known := map[string]*hook{}
	for _, h := range before.hooks {
		known[h.id] = h
	}
	out := &set{}
	for _, c := range configurations {
		for i := range c.Webhooks {
			h := known[idOf(c, &c.Webhooks[i])]
			if h == nil {
				h = newHook(c, &c.Webhooks[i], o)
			}
			out.hooks = append(out.hooks, h)
		}
	}
	slices.SortStableFunc(out.hooks, func(a, b *hook) int { return cmp.Compare(a.name, b.name) })
	return out
}

// without returns the hooks of s that are not in other.
func (s *set) without(other *set) []*hook {
	return slices.DeleteFunc(slices.Clone(s.hooks), func(h *hook) bool { return slices.Contains(other.hooks, h) })
}

// first returns the hook that is asked; nil if none is.
func (s *set) first(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) *hook {
	i := slices.IndexFunc(s.hooks, func(h *hook) bool { return h.answers(gvk, op) })
	if i < 0 {
		return nil
	}
	return s.hooks[i]
}

// Rules implements kinds.Layer.
func (w *Webhooks) Rules(gvk schema.GroupVersionKind) kinds.Rules {
	s := w.current.Load()
	if len(s.hooks) == 0 {
		return kinds.Rules{}
	}
	if known, ok := s.rules.Load(gvk); ok {
		return known.(kinds.Rules)
	}
	rules := w.rules(s, gvk)
	s.rules.Store(gvk, rules)
	return rules
}

// rules makes one rule for each operation that a hook is asked about.
func (w *Webhooks) rules(s *set, gvk schema.GroupVersionKind) kinds.Rules {
	ask := func(op configv1alpha1.InterpreterOperation) (func(question) (*response, error), bool) {
		h := s.first(gvk, op)
		return func(q question) (*response, error) {
			q.operation = op
			return w.ask(h, q)
		}, h != nil
	}
	var r kinds.Rules
	if f, ok := ask(configv1alpha1.InterpreterOperationInterpretReplica); ok {
		r.Replicas = func(obj kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
			a, err := f(question{object: obj})
			if err != nil {
				return 0, nil, err
			}
			return *a.Replicas, a.ReplicaRequirements.DeepCopy(), nil
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationInterpretComponent); ok {
		r.Components = func(obj kinds.Object) ([]workv1alpha2.Component, error) {
			a, err := f(question{object: obj})
			if err != nil {
				return nil, err
			}
			return a.components(), nil
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationReviseReplica); ok {
		r.Revise = func(obj kinds.Object, n int32) (kinds.Object, error) {
			return patched(obj, f, question{object: obj, replicas: &n})
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationRetain); ok {
		r.Retain = func(desired, observed kinds.Object) (kinds.Object, error) {
			out, err := patched(desired, f, question{object: desired, observed: observed})
			if out != nil {
				return out, nil // the question before differs in the status alone
			}
			return nil, err
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationInterpretDependency); ok {
		r.Dependencies = func(obj kinds.Object) ([]kinds.Dependency, error) {
			a, err := f(question{object: obj})
			if err != nil {
				return nil, err
			}
			return a.dependencies(), nil
		}
	}
	statusRules(&r, ask)
	return r
}

// statusRules adds the rules about statuses.
func statusRules(r *kinds.Rules, ask func(configv1alpha1.InterpreterOperation) (func(question) (*response, error), bool)) {
	if f, ok := ask(configv1alpha1.InterpreterOperationInterpretStatus); ok {
		r.Reflect = func(observed kinds.Object) (map[string]any, error) {
			a, err := f(question{object: observed})
			if err != nil {
				return nil, err
			}
			return a.status()
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationInterpretHealth); ok {
		r.Health = func(observed kinds.Object) (bool, error) {
			a, err := f(question{object: observed})
			return err == nil && *a.Healthy, err
		}
	}
	if f, ok := ask(configv1alpha1.InterpreterOperationAggregateStatus); ok {
		r.Aggregate = func(template kinds.Object, items []workv1alpha2.AggregatedStatusItem) (map[string]any, error) {
			out, err := patched(template, f, question{object: template, items: items})
			if out == nil {
				return nil, err
			}
			status, wrong := statusOf(out)
			if wrong != nil {
				return nil, wrong
			}
			return status, err
		}
	}
}

// post sends a question and returns what the server says, checked.
func (h *hook) post(ctx context.Context, q *sent) (*response, int64, error) {
	if h.fault != nil {
		return nil, 0, h.fault
	}
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var answer *response
	body, err := exchange(ctx, h.client, h.url, q)
	if err == nil {
		answer, err = read(body, q)
	}
	// A server that sees the connection go may still end its answer in good order:
	// what was cut short reads as a fault of its own.
	if err != nil && ctx.Err() == context.DeadlineExceeded { //nolint:errorlint // a context's own
		err = fmt.Errorf("no answer within %s", h.timeout)
	}
	return answer, int64(len(body)), err
}
