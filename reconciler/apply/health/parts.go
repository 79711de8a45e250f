package health

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Parts returns a part for each of the entries that the owner applied and that a policy propagates, or is about to,
// for Namespaces, and for volume claims that stay in clusters. The labels of an object decide whether
// the owner applied it. That it is among the entries is no evidence, as these come from a status that a tenant may
// be able to write. It reads caches, and
// without one what two sources hold.
func (r *Reader) Parts(ctx context.Context, owner client.ObjectKey, entries []inventory.Entry) ([]rollup.Part, error) {
	policies, err := r.policies(ctx, r.Hub)
	if err != nil {
		return nil, err
	}
	fleet, err := r.fleet(ctx)
	if err != nil {
		return nil, err
	}
	all := givenBy(ctx, r, policies, fleet)
	names, silent := all.names, all.silent
	var parts, around []rollup.Part
	for _, e := range entries {
		goesEverywhere, err := r.unbound(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		if goesEverywhere { // a Namespace is copied to every cluster, and has no binding
			part, goes, err := r.namespacePart(ctx, owner, e.ID, names, silent)
			if err != nil {
				return nil, err
			}
			if goes {
				around = append(around, part)
			}
			continue
		}
		binding, err := r.binding(ctx, e.ID)
		if err != nil {
			return nil, err
		}
		part, propagated, err := r.part(ctx, owner, e, binding, all)
		if err != nil {
			return nil, err
		}
		if binding != nil {
			if part.Leaving, err = r.leaving(ctx, binding, silent); err != nil {
				return nil, err
			}
			part.Absent = absent(binding, names)
		}
		if binding == nil && !propagated && volumes.IsVolumeClaim(e.ID.GroupKind) {
			if part, propagated, err = r.unbinding(ctx, owner, e.ID, silent); err != nil {
				return nil, err
			}
		}
		if propagated {
			parts = append(parts, part)
		}
	}
	rest, err := besides(ctx, r, owner, entries, policies)
	if err != nil {
		return nil, err
	}
	parts = slices.Concat(parts, missing(owner, entries, policies, names), rollup.Alongside(around, parts), rest)
	both, err := shared(ctx, r.Deps, owner, entries)
	if err != nil {
		return nil, err
	}
	return append(parts, slices.DeleteFunc(both, func(p rollup.Part) bool { return mentions(parts, p) })...), nil
}

// mentions reports whether one of the parts says the same of an object.
func mentions(parts []rollup.Part, p rollup.Part) bool {
	return slices.ContainsFunc(parts, func(has rollup.Part) bool { return has.Object == p.Object && has.Reason == p.Reason })
}

// besides returns the parts that do not come from a template's health: claims that are kept, policies that are not
// heeded, and policies that another Kustomization has overwritten.
func besides(ctx context.Context, r *Reader, owner client.ObjectKey, entries []inventory.Entry, policies selection) ([]rollup.Part, error) {
	kept, err := r.Keeping(ctx, owner, entries)
	if err != nil {
		return nil, err
	}
	untaken, err := unheeded(ctx, r, owner, entries, policies)
	if err != nil {
		return nil, err
	}
	taken, err := takenRules(ctx, r.Hub, owner, entries)
	if err != nil {
		return nil, err
	}
	return slices.Concat(kept, untaken, taken), nil
}

// leaving returns the clusters that still hold the object of a binding and are not among its targets any more.
func (r *Reader) leaving(ctx context.Context, b workv1alpha2.Binding, silent rollup.Silences) ([]rollup.ClusterPart, error) {
	id := b.GetLabels()[bindings.IDLabel(b)]
	if id == "" {
		return nil, nil
	}
	works, err := r.indexed(ctx, client.MatchingFields{bindings.WorksByID: id})
	if err != nil {
		return nil, err
	}
	targets := plan.Targets(plan.SpecOf(b))
	works = slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool {
		cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(w.Namespace)
		return !ok || w.DeletionTimestamp == nil || slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	})
	return leavingParts(works, silent), nil
}

// given is what all parts of one call have in common.
type given struct {
	policies selection
	asked    func() (asked, error)
	names    []string // of all clusters
	silent   rollup.Silences
}

func givenBy(ctx context.Context, r *Reader, policies selection, fleet []clusterv1alpha1.Cluster) given {
	return given{policies: policies, asked: lazily(ctx, r, policies, fleet), names: namesOf(fleet), silent: rollup.SilencesOf(fleet)}
}

func namesOf(fleet []clusterv1alpha1.Cluster) []string {
	names := make([]string, len(fleet))
	for i := range fleet {
		names[i] = fleet[i].Name
	}
	return names
}

func (r *Reader) part(ctx context.Context, owner client.ObjectKey, e inventory.Entry, binding workv1alpha2.Binding, all given) (rollup.Part, bool, error) {
	waits := func(reason string) rollup.Part {
		return rollup.Part{Object: objectName(e.ID), State: rollup.Progressing, Reason: reason}
	}
	key := templatestore.Key{GroupVersionKind: e.GroupVersionKind(), Namespace: e.ID.Namespace, Name: e.ID.Name}
	if binding != nil {
		key = bindings.TemplateOf(binding)
	}
	template, presence, err := r.Templates.Get(ctx, key)
	switch {
	case err != nil:
		return rollup.Part{}, false, err
	case presence == templatestore.Present && !applied(owner, template):
		reason, taken := takenBy(owner, template)
		return waits(reason), taken, nil
	case binding == nil && presence == templatestore.Present && propagation.WaitsForChange(template):
		return rollup.Part{}, false, nil
	case binding == nil && presence == templatestore.Present && all.policies.selects(resourceOf(template)):
		return waits(propagation.Awaits(template)), true, nil
	case binding == nil && presence != templatestore.Present && all.policies.maySelect(e.ID):
		return waits("waits to be taken up by its policy"), true, nil
	case binding == nil: // a workload runs nowhere then
		return waits("no policy carries it"), inventory.IsWorkload(e.ID), nil
	case presence == templatestore.Absent:
		return waits("does not exist"), true, nil
	case presence == templatestore.Unknown:
		part := waits("waits to be looked at")
		part.Unread = true
		return part, true, nil
	}
	part, err := r.partOf(ctx, template, binding, all)
	if err != nil {
		return rollup.Part{}, false, err
	}
	if part.State == rollup.Healthy && inventory.MayRun(e.ID) && rollup.Released(binding) {
		// It runs on, but no change of the template will ever reach it.
		part.State, part.Reason = rollup.Progressing, "no policy carries it any more"
		part.Clusters, part.Former = nil, part.Clusters
	}
	return part, true, nil
}

// applied reports whether the owner applied an object, by its labels.
func applied(owner client.ObjectKey, obj metav1.Object) bool {
	by, known := inventory.OwnerOf(obj)
	return known && by == owner
}

// takenBy returns a text about the other Kustomization that applied an object in the owner's inventory. A tenant may
// be able to write that inventory, and must not learn from it about objects and Kustomizations of other namespaces:
// taken is then false, or the other one is not named.
func takenBy(owner client.ObjectKey, obj metav1.Object) (reason string, taken bool) {
	by, known := inventory.OwnerOf(obj)
	switch {
	case !known || obj.GetAnnotations()[kustomizev1.GroupVersion.Group+"/ssa"] != "": // of none, or shared on purpose
		return "", false
	case by.Namespace == owner.Namespace:
		return "Kustomization " + by.String() + " applies it, too", true
	default:
		return "another Kustomization applies it, too", obj.GetNamespace() == owner.Namespace
	}
}

// objectName returns how package rollup names an object.
func objectName(id inventory.ID) string {
	if id.Namespace == "" {
		return id.GroupKind.Kind + " " + id.Name
	}
	return id.GroupKind.Kind + " " + id.Namespace + "/" + id.Name
}

func resourceOf(obj *unstructured.Unstructured) selector.Resource { return selector.ResourceOf(obj) }

// fleet returns all Clusters. They are the cache's own: do not change them.
func (r Deps) fleet(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	var list clusterv1alpha1.ClusterList
	if err := r.Hub.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	return list.Items, nil
}

// selection is the policies of the hub, and what they never select.
type selection struct {
	policies []policyv1alpha1.Policy
	skip     propagation.SkipRules
}

// policies returns the policies of both scopes. They may be the cache's own: do not
// change them.
func (r Deps) policies(ctx context.Context, from client.Reader) (selection, error) {
	out := selection{skip: r.Skip}
	var namespaced policyv1alpha1.PropagationPolicyList
	if err := from.List(ctx, &namespaced, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list policies: %w", err)
	}
	for i := range namespaced.Items {
		out.policies = append(out.policies, &namespaced.Items[i])
	}
	var cluster policyv1alpha1.ClusterPropagationPolicyList
	if err := from.List(ctx, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("list cluster policies: %w", err)
	}
	for i := range cluster.Items {
		out.policies = append(out.policies, &cluster.Items[i])
	}
	return out, nil
}

// selects reports whether a policy selects the resource.
func (s selection) selects(r selector.Resource) bool {
	return propagation.Propagates(r, s.skip) &&
		slices.ContainsFunc(s.policies, func(p policyv1alpha1.Policy) bool { return propagation.Selects(p, r) })
}

// maySelect reports whether a policy may select an object whose labels are not known: one
// selects its kind, and names it or no name.
func (s selection) maySelect(id inventory.ID) bool {
	return slices.ContainsFunc(s.policies, func(p policyv1alpha1.Policy) bool {
		if p.GetDeletionTimestamp() != nil || (p.GetNamespace() != "" && p.GetNamespace() != id.Namespace) {
			return false
		}
		return slices.ContainsFunc(p.PropagationSpec().ResourceSelectors, func(rs policyv1alpha1.ResourceSelector) bool {
			gvk := schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)
			return gvk.GroupKind() == id.GroupKind && propagation.PropagatesKind(gvk, s.skip) &&
				(rs.Name == "" || rs.Name == id.Name) && (rs.Namespace == "" || rs.Namespace == id.Namespace)
		})
	})
}
