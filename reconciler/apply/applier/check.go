package applier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/utils"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// Set is what one owner wants on the hub.
type Set struct {
	// Owner is the Kustomization.
	Owner types.NamespacedName
	// Objects are what the revision holds, in the order of apply, labelled.
	Objects []*unstructured.Unstructured
	// Writer acts as the tenant.
	Writer client.Client
	// Force allows to delete and create again what cannot be changed.
	Force bool
	// LetGo are objects that stand although a revision has dropped them, and was allowed to: what cannot be changed of
	// them is deleted and created again as well.
	LetGo []inventory.ID
	// Ignore names fields whose changes by others are left alone.
	Ignore []jsondiff.IgnoreRule
}

// Action is what will be, or was, done to an object.
type Action string

// The actions, in the words that people read.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Recreated  Action = "recreated"
	Unchanged  Action = "unchanged"
	Skipped    Action = "skipped"
	Deleted    Action = "deleted"

	// later is for an object that cannot be checked before another one exists.
	later Action = ""
)

// Change is one object of a plan.
type Change struct {
	Desired *unstructured.Unstructured
	Action  Action
	// Owner is the Kustomization that the object's labels on the hub name; empty for none.
	Owner types.NamespacedName
	// Shares says that the object is meant to be written by several.
	Shares bool
	// Relabels says that the owner labels of an object which is otherwise left as it is may be written. Takes says
	// that they are to be written, as the Kustomization which they name has given the object up.
	Relabels, Takes bool
	// disowns says that the apply changes owner references: see the function disowns.
	disowns bool
	// takeover is the patch without which the apply is refused, as others have changed the key of an item of a list.
	takeover []any
	// Version is the resource version that the apply made; empty where it wrote nothing.
	Version string
}

// Writes reports whether the change is yet to write something, or cannot be checked before another one.
func (c Change) Writes() bool {
	switch c.Action {
	case Unchanged, Skipped, Deleted:
		return false
	default:
		return true
	}
}

// Plan is what an apply will do, object by object, in order.
type Plan struct {
	set     Set
	Changes []Change
}

// Defines reports whether a plan still has definitions (kinds, namespaces) to write, or objects that wait for them.
func (p Plan) Defines() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool {
		return c.Action == later || c.Writes() && inventory.StageOf(c.Desired.GroupVersionKind().GroupKind()) == inventory.Definitions
	})
}

// Check compares a set with the hub and returns what is to be done.
//
// It returns a *Refusal if the hub would not take an object as it is, and
// another error for a fault that may pass. It writes nothing.
func (a *Applier) Check(ctx context.Context, set Set, seen Observed) (Plan, error) {
	plan := Plan{set: set, Changes: make([]Change, len(set.Objects))}
	for i, obj := range set.Objects {
		plan.Changes[i].Desired = obj
	}
	all := make([]int, len(plan.Changes))
	for i := range all {
		all[i] = i
	}
	surveying, leave, err := places.Compute(ctx)
	if err != nil {
		return Plan{}, err
	}
	ready, err := a.survey(surveying, plan, all)
	leave()
	if err != nil {
		return Plan{}, err
	}
	if err := a.compare(ctx, plan, ready, seen); err != nil {
		return Plan{}, err
	}
	a.memory.keep(set.Owner, plan.Changes)
	return plan, nil
}

// survey finds what is wrong with objects of a set before they are sent, and
// returns the indexes of those that can be compared now. The others wait for a
// kind or a namespace that comes with the set.
func (a *Applier) survey(ctx context.Context, plan Plan, indexes []int) ([]int, error) {
	v := surveyor{a: a, kinds: map[schema.GroupVersionKind]bool{}, namespaces: map[string]bool{}, accounts: map[types.NamespacedName]bool{}, known: map[string]*Finding{}, served: map[schema.GroupVersionKind]lookup{}}
	for _, c := range plan.Changes {
		v.provides(c.Desired)
	}
	var ready []int
	var findings []Finding
	for _, i := range indexes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now, problem, err := v.comparable(ctx, plan.Changes[i].Desired)
		if err != nil {
			return nil, err
		}
		if problem != nil {
			findings = append(findings, *forbiddenBefore(ctx, plan, i, problem))
		}
		if now {
			ready = append(ready, i)
		}
	}
	return ready, refuse(findings)
}

// forbiddenBefore returns the problem of an object if the writer may write it, and else that
// it may not: a tenant must not learn from our answers which namespaces and accounts of others
// exist.
func forbiddenBefore(ctx context.Context, plan Plan, i int, problem *Finding) *Finding {
	if !slices.Contains([]string{ReasonNamespaceNotFound, inventory.ReasonNamespaceTerminating, ReasonAccountNotFound}, problem.Reason) {
		return problem
	}
	obj := plan.Changes[i].Desired
	if err := dryRun(ctx, plan.set.Writer, obj.DeepCopy()); apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return findingOf(inventory.IDOf(obj), err)
	}
	return problem
}

// surveyor surveys the objects of one set. It knows which kinds, namespaces and accounts the set itself creates.
type surveyor struct {
	a          *Applier
	kinds      map[schema.GroupVersionKind]bool
	namespaces map[string]bool
	accounts   map[types.NamespacedName]bool
	// known holds what is wrong with each namespace that was looked up; nil for one that exists.
	known map[string]*Finding
	// served holds the kinds that were looked up, as a set has many objects of few kinds.
	served map[schema.GroupVersionKind]lookup
}

// lookup is the outcome of looking up a kind.
type lookup struct {
	mapping *meta.RESTMapping
	err     error
}

func (v surveyor) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	known, ok := v.served[gvk]
	if !ok {
		known.mapping, known.err = v.a.reader.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		v.served[gvk] = known
	}
	return known.mapping, known.err
}

func (v surveyor) provides(obj *unstructured.Unstructured) {
	switch {
	case utils.IsNamespace(obj):
		v.namespaces[obj.GetName()] = true
	case obj.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ServiceAccount"):
		v.accounts[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = true
	case utils.IsCRD(obj):
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(obj.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			if name, _ := fields["name"].(string); fields["served"] == true {
				v.kinds[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = true
			}
		}
	}
}

// comparable reports whether obj can be compared now, and what is wrong with it, if anything is. False
// without a finding means that the kind or namespace of obj comes with the set and is not there yet.
func (v surveyor) comparable(ctx context.Context, obj *unstructured.Unstructured) (bool, *Finding, error) {
	id, gvk := inventory.IDOf(obj), obj.GroupVersionKind()
	if cluster, executes := workv1alpha2.ClusterOfExecutionNamespace(id.Namespace); executes && !v.a.opts.Remote {
		return false, finding(id, ReasonForbidden, "the namespace %s carries work to the cluster %s and is written by the control plane alone: choose another one", id.Namespace, cluster), nil
	}
	mapping, err := v.mapping(gvk)
	switch {
	case meta.IsNoMatchError(err) && v.kinds[gvk]:
		return false, v.size(obj), nil
	case meta.IsNoMatchError(err):
		return false, finding(id, ReasonUnknownKind, "%s does not know the kind %s of %s: %s", v.a.opts.server(), gvk.Kind, gvk.GroupVersion(), v.a.opts.unknownNext(gvk.Group)), nil
	case err != nil:
		return false, nil, fmt.Errorf("look up the kind %s: %w", gvk, err)
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		obj.SetNamespace("")
		return true, v.size(obj), nil
	case id.Namespace == "":
		return false, finding(id, ReasonNamespaceNotSet, "it names no namespace: set metadata.namespace, the namespace of the kustomization, or spec.targetNamespace"), nil
	}
	if problem := v.size(obj); problem != nil {
		return false, problem, nil
	}
	ready, problem, err := v.namespace(ctx, id)
	if ready && problem == nil && err == nil {
		problem, err = v.token(ctx, obj)
		ready = problem == nil
	}
	return ready, problem, err
}

func (v surveyor) size(obj *unstructured.Unstructured) *Finding {
	raw, err := json.Marshal(obj.Object)
	if err == nil && len(raw) <= v.a.opts.MaxObjectBytes {
		return nil
	}
	return finding(inventory.IDOf(obj), ReasonObjectTooLarge, "it has %d bytes, at most %d can be stored: split it", len(raw), v.a.opts.MaxObjectBytes)
}

// namespace reports whether the object's namespace exists. If it does not, the finding says so,
// unless the namespace comes with the set.
func (v surveyor) namespace(ctx context.Context, id inventory.ID) (bool, *Finding, error) {
	problem, asked := v.known[id.Namespace]
	if !asked {
		var ns corev1.Namespace
		err := v.a.reader.hub.Get(ctx, client.ObjectKey{Name: id.Namespace}, &ns)
		switch {
		case apierrors.IsNotFound(err):
			problem = finding(id, ReasonNamespaceNotFound, "the namespace %s does not exist: commit it too, or create it", id.Namespace)
		case apierrors.IsForbidden(err) && v.a.opts.Remote: // the dry run finds out
		case err != nil:
			return false, nil, fmt.Errorf("look up the namespace %s: %w", id.Namespace, err)
		case ns.DeletionTimestamp != nil:
			problem = finding(id, inventory.ReasonNamespaceTerminating, "the namespace %s is being deleted: wait until it is gone", id.Namespace)
		}
		v.known[id.Namespace] = problem
	}
	switch {
	case problem == nil:
		return true, nil, nil
	case v.namespaces[id.Namespace]:
		return false, nil, nil
	default:
		own := *problem
		own.Object = inventory.Describe(id)
		return false, &own, nil
	}
}

// compare fills in the actions of the changes with the given indexes.
func (a *Applier) compare(ctx context.Context, plan Plan, indexes []int, seen Observed) error {
	var mu sync.Mutex
	var findings []Finding
	err := each(ctx, a.opts.Parallel, indexes, func(ctx context.Context, i int) error {
		action, problem, err := a.judge(ctx, plan.set, &plan.Changes[i], seen)
		if problem != nil {
			mu.Lock()
			defer mu.Unlock()
			findings = append(findings, *problem)
		}
		plan.Changes[i].Action = action
		return err
	})
	if len(findings) > 0 {
		return refuse(findings)
	}
	return err
}

// judge returns the action for one object, and sets in c whose the object is. Except where memory
// shows that nothing has changed, it compares by a dry run, so that defaults and admission count.
func (a *Applier) judge(ctx context.Context, set Set, c *Change, seen Observed) (Action, *Finding, error) {
	id := inventory.IDOf(c.Desired)
	observed := seen[id]
	c.Desired = keepingTaints(c.Desired, observed)
	desired := c.Desired
	if observed != nil && a.memory.has(set.Owner, desired, observed) {
		return Unchanged, nil, nil
	}
	outcome := desired.DeepCopy()
	err := dryRun(ctx, set.Writer, outcome)
	if observed == nil && (err != nil || outcome.GetResourceVersion() != "") {
		found, getErr := a.reader.get(ctx, desired)
		if getErr != nil && !(a.opts.Remote && apierrors.IsForbidden(getErr)) { // what the dry run says is told then
			return later, nil, getErr
		}
		observed = found
	}
	c.Shares = Shares(desired, observed)
	if observed != nil {
		c.Owner, _ = inventory.OwnerOf(observed)
	}
	if Skips(desired, observed) {
		c.Relabels = observed != nil && !frozen(desired, observed) && !apierrors.IsForbidden(err)
		return skipped(ctx, set, desired, err)
	}
	if err != nil {
		return a.refused(ctx, set, c, observed, err)
	}
	if observed == nil {
		return Created, nil, nil
	}
	differs, err := differ(set, desired, observed, outcome)
	c.disowns = disowns(observed, outcome)
	if err != nil || differs || c.disowns {
		return Configured, nil, err
	}
	a.memory.put(set.Owner, desired, observed)
	return Unchanged, nil, nil
}

// skipped leaves an object as it is, if the writer may at least read it. If it may not, that is a
// finding: else the answer would show a tenant whether an object of somebody else exists.
func skipped(ctx context.Context, set Set, desired *unstructured.Unstructured, cause error) (Action, *Finding, error) {
	if !apierrors.IsForbidden(cause) {
		return Skipped, nil, nil
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(desired.GroupVersionKind())
	err := set.Writer.Get(ctx, client.ObjectKeyFromObject(desired), found)
	if apierrors.IsForbidden(err) {
		return later, findingOf(inventory.IDOf(desired), cause), nil
	}
	return Skipped, nil, client.IgnoreNotFound(err)
}

// refused decides what the server's refusal of an object means.
func (a *Applier) refused(ctx context.Context, set Set, c *Change, observed *unstructured.Unstructured, cause error) (Action, *Finding, error) {
	desired := c.Desired
	id := inventory.IDOf(desired)
	if c.takeover = takeover(desired, observed); len(c.takeover) > 0 && ownership.Crowded(cause) {
		return Configured, nil, nil // what others made of it is taken over before it is applied
	}
	c.takeover = nil
	if observed != nil && isImmutable(cause) && !irreplaceable(id.GroupKind) {
		if !set.Force && !forced(desired, observed) && !slices.Contains(set.LetGo, id) {
			return later, finding(id, ReasonImmutableField, "%s: delete it first, or let it be recreated with spec.force", plain(cause)), nil
		}
		return a.recreate(ctx, set, desired)
	}
	if observed != nil && ownedInGoneVersion(desired, observed, cause) {
		return Configured, nil, nil // its managed fields are migrated before it is applied
	}
	if problem := findingOf(id, cause); problem != nil {
		return later, problem, nil
	}
	return later, nil, fmt.Errorf("check %s: %w", inventory.Describe(id), cause)
}

// irreplaceable reports whether objects of a kind are never deleted to be created again, as more would be lost
// than the object itself: what runs in a cluster, the data of a volume claim, what a Kustomization owns.
func irreplaceable(kind schema.GroupKind) bool {
	switch kind {
	case schema.GroupKind{Group: clusterv1alpha1.GroupName, Kind: clusterv1alpha1.ResourceKindCluster},
		schema.GroupKind{Kind: "PersistentVolumeClaim"},
		schema.GroupKind{Group: kustomizev1.GroupVersion.Group, Kind: kustomizev1.KustomizationKind}:
		return true
	}
	return false
}

// recreate makes sure, before an object is deleted to be created again, that the hub would accept
// the new one, by a dry run under another name: the old one must not be lost to an invalid manifest.
func (a *Applier) recreate(ctx context.Context, set Set, desired *unstructured.Unstructured) (Action, *Finding, error) {
	id := inventory.IDOf(desired)
	if inventory.StageOf(id.GroupKind) == inventory.Definitions {
		return later, finding(id, ReasonImmutableField, "it cannot be changed, and is never recreated, as all that depends on it would go: delete it by hand"), nil
	}
	twin := desired.DeepCopy()
	twin.SetName(twinName(desired.GetName()))
	if err := dryRun(ctx, set.Writer, twin); err != nil {
		if problem := findingOf(id, err); problem != nil {
			return later, problem, nil
		}
		return later, nil, fmt.Errorf("check %s: %w", inventory.Describe(id), err)
	}
	return Recreated, nil, nil
}

// twinName is a name that is most likely free, of a valid length.
func twinName(name string) string {
	const longest = 40
	return strings.TrimRight(name[:min(len(name), longest)], "-.") + "-recreate-check"
}

// dryRun asks the server what an apply would make of obj, and puts the answer
// into it.
func dryRun(ctx context.Context, writer client.Client, obj *unstructured.Unstructured) error {
	return secrets.Worded(obj, writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.ForceOwnership, client.FieldOwner(FieldManager), client.DryRunAll))
}

// unknownNext returns the next step for a kind that is not served. Some kinds of Flux are not: the control plane
// does not act on them, but the Flux of a member may.
func (o Options) unknownNext(group string) string {
	if strings.HasSuffix(group, ".toolkit.fluxcd.io") && !o.Remote {
		return "it is one of Flux's that the control plane does not act on: commit its CustomResourceDefinition and a policy, and the Flux of the clusters does; or leave it to a repository that only they follow"
	}
	return "correct it, or commit its CustomResourceDefinition"
}
