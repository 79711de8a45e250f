package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/template/reach"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// policies reconciles propagation policies of both scopes: it makes the store watch
// the kinds that they select, sends the templates that an edit concerns to the
// template loop, writes their status, and removes a deleted policy's finalizer once nothing
// is claimed by it. A request without a namespace names a ClusterPropagationPolicy.
type policies struct {
	hub       client.Client
	catalog   *catalog
	templates *templatestore.Store
	reach     reach.Finder
	inbox     *loop.Inbox[templatestore.Key]
	opts      Options

	written  *writecache.Cache[policyv1alpha1.Policy]
	requests loop.Inbox[ctrl.Request]
	report   *reporter
	sent     reach.Sent
}

func newPolicies(hub client.Client, templates *templatestore.Store, inbox *loop.Inbox[templatestore.Key], opts Options) *policies {
	p := &policies{
		hub:       hub,
		catalog:   &catalog{hub: hub},
		templates: templates,
		inbox:     inbox,
		opts:      opts,
		written:   writecache.New[policyv1alpha1.Policy](opts.Clock),
		reach:     reach.Finder{Hub: hub, Templates: templates, Preempts: !opts.NoPreemption},
	}
	p.report = newReporter(hub, templates, p.written, p.requests.AddAfter, opts)
	return p
}

// Reconcile follows one policy.
func (p *policies) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cached, found, err := p.catalog.get(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	latest, found := p.written.Latest(req.NamespacedName, cached, found)
	if !found {
		p.templates.Want(req)
		p.forget(req)
		return ctrl.Result{}, nil
	}
	policy := latest.DeepCopyObject().(policyv1alpha1.Policy)
	p.templates.Want(req, p.wanted(policy)...)
	if policy.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, p.release(ctx, req, policy)
	}
	if adopted, err := p.adopt(ctx, policy); adopted || err != nil {
		return ctrl.Result{}, err
	}
	needs, err := p.needs(ctx, policy)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := p.send(ctx, req, policy, needs); err != nil {
		return ctrl.Result{}, err
	}
	again, err := p.report.run(ctx, req, policy, needs)
	if again == 0 && idle(policy.PropagationStatus()) {
		again = misnamedEvery
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// misnamedEvery is how often the condition of a policy that carries nothing is looked at: the object that it says is meant may
// be gone, and no event of another object starts a pass.
const misnamedEvery = time.Minute

// kindsOf returns the kinds that policy selects and that may be propagated.
func kindsOf(policy policyv1alpha1.Policy, skip propagation.SkipRules) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	selectors := policy.PropagationSpec().ResourceSelectors
	for i := range selectors {
		gvk := kindOf(&selectors[i])
		if !slices.Contains(out, gvk) && propagation.PropagatesKind(gvk, skip) {
			out = append(out, gvk)
		}
	}
	return out
}

// wanted returns the kinds that policy selects, and those of which it still
// claims templates, which have yet to lose the claim.
func (p *policies) wanted(policy policyv1alpha1.Policy) []schema.GroupVersionKind {
	out := kindsOf(policy, p.opts.Skip)
	for _, gvk := range p.report.statistics.Kinds(propagation.RefOf(policy)) {
		if !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	return out
}

// adopt adds the permanent ID and the finalizer to a policy if admission did
// not, as on another API server.
func (p *policies) adopt(ctx context.Context, policy policyv1alpha1.Policy) (bool, error) {
	finalizer := finalizerOf(policy)
	if propagation.RefOf(policy).ID != "" && controllerutil.ContainsFinalizer(policy, finalizer) {
		return false, nil
	}
	before := policy.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(policy, finalizer)
	if propagation.RefOf(policy).ID == "" {
		labels := map[string]string{propagation.IDLabel(policy): uuid.NewString()}
		for k, v := range policy.GetLabels() {
			labels[k] = v
		}
		policy.SetLabels(labels)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := p.hub.Patch(ctx, policy, patch); {
	case err == nil:
		p.written.Wrote(policy)
	case !bindings.IsStale(err):
		return false, fmt.Errorf("give policy %s its permanent id: %w", propagation.RefOf(policy), err)
	}
	return true, nil
}

// finalizerOf returns the finalizer that keeps a policy until its claims are
// removed.
func finalizerOf(policy policyv1alpha1.Policy) string {
	if policy.GetNamespace() == "" {
		return policyv1alpha1.ClusterPropagationPolicyControllerFinalizer
	}
	return policyv1alpha1.PropagationPolicyControllerFinalizer
}

// needs are the objects that a policy names and that must exist.
type needs struct {
	// overrides that are missing, in the order in which the policy names them.
	overrides []string
	// class is the state of its PriorityClass: empty if it names none.
	class string
	// noClass says that it names a PriorityClass that does not exist.
	noClass bool
	// strangers are the clusters that it names and that do not exist.
	strangers []propagation.Stranger
}

// needs returns what policy needs.
func (p *policies) needs(ctx context.Context, policy policyv1alpha1.Policy) (needs, error) {
	var out needs
	var unread error
	out.overrides = propagation.MissingOverrides(policy, func(namespace, name string) bool {
		there, err := p.catalog.overrideExists(ctx, namespace, name)
		unread = errors.Join(unread, err)
		return there
	})
	if unread != nil {
		return out, unread
	}
	var err error
	if out.strangers, err = p.catalog.strangers(ctx, policy); err != nil {
		return out, err
	}
	class := policy.PropagationSpec().SchedulePriority
	if class == nil || p.opts.NoPriority {
		return out, nil
	}
	value, found, err := p.catalog.priority(ctx, class.PriorityClassName)
	out.class, out.noClass = fmt.Sprintf("%s=%d,%t", class.PriorityClassName, value, found), !found
	return out, err
}

// send enqueues, at the template loop, the templates that policy may carry and those
// that it has claimed, once per edit of the policy and per change of what it
// needs.
func (p *policies) send(ctx context.Context, req ctrl.Request, policy policyv1alpha1.Policy, needs needs) error {
	says := fmt.Sprintf("%s %d %s %s", policy.GetUID(), policy.GetGeneration(), strings.Join(needs.overrides, ","), needs.class)
	before, known := p.sent.Get(req)
	if before == says {
		return nil
	}
	later := !known // at the start, with a low priority: edits by users go first
	if err := p.reach.Selected(ctx, policy, func(key templatestore.Key) { p.inbox.Add(key, later) }); err != nil {
		return err
	}
	if _, err := p.reach.Claimed(ctx, policy, func(key templatestore.Key) { p.inbox.Add(key, later) }); err != nil {
		return err
	}
	p.sent.Put(req, says)
	return nil
}

func (p *policies) forget(req ctrl.Request) {
	p.sent.Forget(req)
	p.report.forget(req)
}

// release removes a deleted policy's finalizer once nothing is claimed by it. It enqueues the claimed templates
// once, and the template loop removes the claim from each and its binding, or replaces it by that of another policy.
// Each of these changes enqueues the policy again.
func (p *policies) release(ctx context.Context, req ctrl.Request, policy policyv1alpha1.Policy) error {
	patch, has := bindings.WithoutFinalizer(policy, finalizerOf(policy))
	if !has || p.written.Ended(policy) {
		return nil
	}
	for _, gvk := range kindsOf(policy, p.opts.Skip) {
		if state := p.templates.State(gvk); state != templatestore.Synced && state != templatestore.Unserved {
			return nil // the store enqueues the policy when the kind is completely listed
		}
	}
	says := "deleted " + string(policy.GetUID())
	before, _ := p.sent.Get(req)
	claimed, err := p.reach.Claimed(ctx, policy, func(key templatestore.Key) {
		if before != says {
			p.inbox.Add(key, false)
		}
	})
	if err != nil {
		return err
	}
	if p.sent.Put(req, says); claimed > 0 {
		return nil
	}
	switch err := p.hub.Patch(ctx, policy, patch); {
	case err == nil:
		p.written.Deleted(policy)
		log.FromContext(ctx).Info("let a deleted policy go: what it propagated stays")
	case !bindings.IsStale(err):
		return fmt.Errorf("let policy %s go: %w", propagation.RefOf(policy), err)
	}
	return nil
}

// abandoned enqueues, at the template loop, what a policy had claimed that is gone, or
// has another permanent ID now, without release having been done: somebody else removed the finalizer.
func (p *policies) abandoned(ctx context.Context, policy policyv1alpha1.Policy) {
	if _, err := p.reach.Claimed(ctx, policy, func(key templatestore.Key) { p.inbox.Add(key, false) }); err != nil {
		log.FromContext(ctx).Error(err, "find what a policy had claimed", "policy", propagation.RefOf(policy).String())
	}
}
