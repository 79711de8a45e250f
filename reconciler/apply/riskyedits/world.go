package riskyedits

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/riskyedit"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// world holds policies and templates before a revision and with it, to decide which policy a template has.
type world struct {
	before map[propagation.PolicyRef]policyv1alpha1.Policy
	after  *propagation.Directory
	// next are the policies as they will be with the revision.
	next map[inventory.ID]policyv1alpha1.Policy
	// templates are the objects of the revision.
	templates map[inventory.ID]*unstructured.Unstructured
}

// readWorld reads the policies of the hub, and applies the revision to a copy.
func (c *check) readWorld(ctx context.Context) error {
	if c.world != nil {
		return nil
	}
	all, err := policies(ctx, c.hub)
	if err != nil {
		return err
	}
	w := &world{before: map[propagation.PolicyRef]policyv1alpha1.Policy{}, templates: map[inventory.ID]*unstructured.Unstructured{}}
	removed := map[inventory.ID]bool{}
	for _, id := range c.revision.Removed {
		removed[id] = true
	}
	known := map[inventory.ID]policyv1alpha1.Policy{}
	for _, p := range all {
		w.before[propagation.RefOf(p)] = p
		known[idOf(p)] = p
	}
	var overrides []policyv1alpha1.Override
	for _, change := range c.revision.Changes {
		id := inventory.IDOf(change.Desired)
		w.templates[id] = change.Desired
		if p := propagationOf(change.Desired); p != nil {
			known[id] = identified(p, known[id])
		}
		if o := overrideOf(change.Desired); o != nil {
			overrides = append(overrides, o)
		}
	}
	maps.DeleteFunc(known, func(id inventory.ID, _ policyv1alpha1.Policy) bool { return removed[id] })
	there, err := overridesOf(ctx, c.hub)
	if err != nil {
		return err
	}
	w.next = known
	w.after = propagation.NewDirectory(slices.Collect(maps.Values(known)), append(overrides, there...), propagation.DefaultSkipRules())
	c.world = w
	return nil
}

// identified sets the ID label of a policy in the revision: to the ID of the existing policy, or, for one that is yet
// to be created, to a value that no other policy has.
func identified(p, there policyv1alpha1.Policy) policyv1alpha1.Policy {
	label := propagation.IDLabel(p)
	labels := map[string]string{}
	for key, value := range p.GetLabels() {
		labels[key] = value
	}
	if labels[label] = "of " + p.GetNamespace() + "/" + p.GetName(); there != nil {
		labels[label] = propagation.RefOf(there).ID
	}
	p.SetLabels(labels)
	return p
}

// takenOut returns what a policy would remove from clusters by a mistake, of the templates that it has with the
// revision.
func (c *check) takenOut(ctx context.Context, policy inventory.ID) (finding, error) {
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	out, counted := finding{policy: policy}, &summary{}
	err := bindings.Each(ctx, c.hub, func(b workv1alpha2.Binding) {
		before, after := c.carriers(b)
		if before == nil || after == nil || idOf(after) != policy {
			return
		}
		loss := riskyedit.Propagation(before.PropagationSpec(), after.PropagationSpec(), c.fleet)
		if loss.Mistake == "" {
			return
		}
		var clusters []string
		for _, t := range b.BindingSpec().Clusters {
			if loss.In(t.Name, b.BindingSpec().Replicas > 0) {
				clusters = append(clusters, t.Name)
			}
		}
		counted.add(b, clusters)
		out.mistake, out.unknown = loss.Mistake, loss.Unknown
	}, client.InNamespace(policy.Namespace))
	if err != nil {
		return finding{}, fmt.Errorf("find what %s takes out of clusters: %w", inventory.Describe(policy), err)
	}
	out.does, out.clusters = "take "+counted.String()+" out of", counted.clusters
	return out, nil
}

// carriers returns the policies of a binding's template before the revision and with it. Either is nil
// for none.
func (c *check) carriers(b workv1alpha2.Binding) (before, after policyv1alpha1.Policy) {
	if b.GetDeletionTimestamp() != nil || len(b.BindingSpec().Clusters) == 0 {
		return nil, nil
	}
	before = c.world.carrier(b)
	template, known := c.template(b)
	decision := propagation.Decide(c.world.after.Case(template))
	switch next := c.world.next[idOf(before)]; {
	case decision.Outcome == propagation.Carried:
		return before, decision.Policy
	case next != nil && (!known || decision.Outcome == propagation.Waiting): // assume that its policy still selects it
		return before, next
	default:
		return before, nil
	}
}

// carrier returns the policy of a binding's template. If it has none any more, the template still runs where its last
// policy put it: carrier then returns a policy without a name, with the placement or the clusters of the binding.
func (w *world) carrier(b workv1alpha2.Binding) policyv1alpha1.Policy {
	if p := w.before[claimOf(b)]; p != nil {
		return p
	}
	out, spec := &policyv1alpha1.PropagationPolicy{}, b.BindingSpec()
	out.Namespace = b.GetNamespace()
	if spec.Placement != nil {
		out.Spec.Placement = *spec.Placement
		return out
	}
	stands := &policyv1alpha1.ClusterAffinity{}
	for _, t := range spec.Clusters {
		stands.ClusterNames = append(stands.ClusterNames, t.Name)
	}
	out.Spec.Placement.ClusterAffinity = stands
	return out
}

// template returns the template of a binding as it is in the revision, or else on the hub. If it is in neither, known
// is false and only its kind and name are set.
func (c *check) template(b workv1alpha2.Binding) (out *unstructured.Unstructured, known bool) {
	of := b.BindingSpec().Resource
	out = &unstructured.Unstructured{}
	out.SetAPIVersion(of.APIVersion)
	out.SetKind(of.Kind)
	out.SetNamespace(of.Namespace)
	out.SetName(of.Name)
	if desired := c.world.templates[inventory.IDOf(out)]; desired != nil {
		out, known = desired.DeepCopy(), true
	} else if there := c.others.of(out, c.revision.Labels); there != nil {
		out, known = there.DeepCopy(), true
	}
	if p := c.world.before[claimOf(b)]; p != nil {
		propagation.ClaimOf(p).Set(out)
	}
	return out, known
}

func claimOf(b workv1alpha2.Binding) propagation.PolicyRef {
	ref, _ := propagation.Claimed(b)
	return ref
}

// takenBack returns the objects in clusters that lose changes by an override policy of the revision. before is the
// policy as it was, or the one that it replaces, and must select the object.
func (c *check) takenBack(ctx context.Context, id inventory.ID, before, after policyv1alpha1.Override, loss riskyedit.Loss) (finding, error) {
	if err := c.readWorld(ctx); err != nil {
		return finding{}, err
	}
	counted := &summary{}
	renamed := id.Name != before.GetName() || id.Namespace != before.GetNamespace()
	err := bindings.Each(ctx, c.hub, func(b workv1alpha2.Binding) {
		template, _ := c.template(b)
		if b.GetDeletionTimestamp() != nil || !selects(before, template) || renamed && !selects(after, template) {
			return
		}
		var clusters []string
		for _, t := range b.BindingSpec().Clusters {
			if loss.In(t.Name, false) {
				clusters = append(clusters, t.Name)
			}
		}
		counted.add(b, clusters)
	}, client.InNamespace(before.GetNamespace()))
	if err != nil {
		return finding{}, fmt.Errorf("find what %s changes: %w", inventory.Describe(id), err)
	}
	what := "it"
	if renamed {
		what = before.GetName()
	}
	return finding{policy: id, mistake: loss.Mistake, unknown: loss.Unknown, does: "leave " + counted.String() + " without what " + what + " changes in", clusters: counted.clusters}, nil
}

func selects(o policyv1alpha1.Override, template *unstructured.Unstructured) bool {
	selectors := o.OverrideSpec().ResourceSelectors
	return len(selectors) == 0 || selector.Best(selectors, selector.ResourceOf(template)) != selector.None
}

// policies returns all propagation policies, of both scopes. They are the cache's own: do not change them.
func policies(ctx context.Context, hub client.Reader) ([]policyv1alpha1.Policy, error) {
	var namespaced policyv1alpha1.PropagationPolicyList
	if err := hub.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PropagationPolicies: %w", err)
	}
	var wide policyv1alpha1.ClusterPropagationPolicyList
	if err := hub.List(ctx, &wide, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterPropagationPolicies: %w", err)
	}
	var out []policyv1alpha1.Policy
	for i := range namespaced.Items {
		out = append(out, &namespaced.Items[i])
	}
	for i := range wide.Items {
		out = append(out, &wide.Items[i])
	}
	return out, nil
}

// overridesOf returns all override policies, of both scopes. They are the cache's own: do not change them.
func overridesOf(ctx context.Context, hub client.Reader) ([]policyv1alpha1.Override, error) {
	var namespaced policyv1alpha1.OverridePolicyList
	if err := hub.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list OverridePolicies: %w", err)
	}
	var wide policyv1alpha1.ClusterOverridePolicyList
	if err := hub.List(ctx, &wide, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ClusterOverridePolicies: %w", err)
	}
	var out []policyv1alpha1.Override
	for i := range namespaced.Items {
		out = append(out, &namespaced.Items[i])
	}
	for i := range wide.Items {
		out = append(out, &wide.Items[i])
	}
	return out, nil
}

// propagationOf returns the propagation policy that an object is; nil if it is none.
func propagationOf(obj *unstructured.Unstructured) policyv1alpha1.Policy {
	switch kindOf(obj) {
	case policyv1alpha1.ResourceKindPropagationPolicy:
		return read(obj, &policyv1alpha1.PropagationPolicy{})
	case policyv1alpha1.ResourceKindClusterPropagationPolicy:
		return read(obj, &policyv1alpha1.ClusterPropagationPolicy{})
	default:
		return nil
	}
}

// overrideOf returns the override policy that an object is; nil if it is none.
func overrideOf(obj *unstructured.Unstructured) policyv1alpha1.Override {
	switch kindOf(obj) {
	case policyv1alpha1.ResourceKindOverridePolicy:
		return read(obj, &policyv1alpha1.OverridePolicy{})
	case policyv1alpha1.ResourceKindClusterOverridePolicy:
		return read(obj, &policyv1alpha1.ClusterOverridePolicy{})
	default:
		return nil
	}
}

func kindOf(obj *unstructured.Unstructured) string {
	if obj == nil || obj.GroupVersionKind().Group != policyv1alpha1.GroupVersion.Group {
		return ""
	}
	return obj.GetKind()
}

// read converts obj into the given type. It returns the zero value if that fails: the server refuses such an object.
func read[T any, P interface {
	*T
	client.Object
}](obj *unstructured.Unstructured, into P) P {
	if runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into) != nil {
		return new(T)
	}
	return into
}

// idOf returns the ID that inventories have for a policy.
func idOf(p policyv1alpha1.Policy) inventory.ID {
	return inventory.ID{
		GroupKind: policyv1alpha1.GroupVersion.WithKind(propagation.KindOf(p)).GroupKind(), Namespace: p.GetNamespace(), Name: p.GetName(),
	}
}
