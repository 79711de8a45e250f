package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Object names an object of a member.
type Object struct {
	schema.GroupVersionKind
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// String returns the kind and the name, with the namespace before the name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func objectOf(obj *unstructured.Unstructured) Object {
	return Object{obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()}
}

func (o Object) key() client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
}

// in returns the object's name for people, with its cluster.
func (o Object) in(cluster string) string { return o.String() + " in cluster " + cluster }

// Options configure a promotion.
type Options struct {
	// Cluster is the member that holds the object.
	Cluster string
	// Hub and Member are clients of both sides. The member is only read, and gets dry runs;
	// nothing is written to it.
	Hub, Member client.Client
	// Direct is true if Member does not go through the hub's proxy. Then it is checked to be
	// the cluster that the hub has under this name.
	Direct bool
	// Interpreter finds what objects refer to.
	Interpreter *interpreter.Interpreter
	// Dependencies promotes what the object refers to, too.
	Dependencies bool
	// PolicyName is the name of the policy to create; empty means the name that karmadactl
	// would give it.
	PolicyName string
	// NoPolicy creates no policy: an existing one propagates the object.
	NoPolicy bool
	// AllowChanges continues even if the object would be changed in the member.
	AllowChanges bool
	// Unrehearsed skips the dry runs on both sides, to only show what would be created.
	Unrehearsed bool
	// Now is the time for rehearsed decisions.
	Now time.Time
}

// Item is an object that is promoted.
type Item struct {
	// Template is the object for the hub.
	Template *unstructured.Unstructured
	// There is true if the hub already has it.
	There bool

	live *unstructured.Unstructured
}

// Promotion has the objects to create on the hub.
type Promotion struct {
	// Items are the object itself and what it refers to.
	Items []Item
	// Policy propagates them; nil if none is to be created.
	Policy policyv1alpha1.Policy
	// PolicyThere is true if the hub already has the same policy.
	PolicyThere bool
	// Notes are what users should know beside it.
	Notes []string

	o       Options
	skip    propagation.SkipRules
	earlier earlier
	// cordoned is true if the cluster is cordoned.
	cordoned bool
}

// Plan returns what promoting an object would create, or an error if that would be wrong. It
// writes nothing.
func Plan(ctx context.Context, of Object, o Options) (*Promotion, error) {
	p := &Promotion{o: o, skip: propagation.DefaultSkipRules()}
	err := p.checkCluster(ctx)
	if err != nil {
		return nil, err
	}
	if p.earlier, err = findEarlier(ctx, of, o); err != nil {
		return nil, err
	}
	live, err := p.read(ctx, of)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s: nothing to promote; flotilla get %s -A -C %s lists what there is", of.in(o.Cluster), strings.ToLower(of.Kind), o.Cluster)
	}
	if err != nil {
		return nil, err
	}
	item, err := p.item(ctx, live)
	if err != nil {
		return nil, err
	}
	p.Items = []Item{item}
	if o.Dependencies {
		if err := p.addDependencies(ctx); err != nil {
			return nil, err
		}
	}
	if !o.NoPolicy {
		if err := p.addPolicy(); err != nil {
			return nil, err
		}
	}
	if o.Unrehearsed {
		return p, nil
	}
	return p, p.rehearse(ctx)
}

// checkCluster returns an error unless the cluster is in the fleet, is not leaving it, and is
// the one to which the member's client connects.
func (p *Promotion) checkCluster(ctx context.Context) error {
	cluster := &clusterv1alpha1.Cluster{}
	err := p.o.Hub.Get(ctx, client.ObjectKey{Name: p.o.Cluster}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return fleet.NoCluster(ctx, p.o.Hub, p.o.Cluster)
	case err != nil:
		return err
	case !cluster.DeletionTimestamp.IsZero():
		return fmt.Errorf("cluster %s is leaving the fleet: nothing can be promoted from it", p.o.Cluster)
	}
	p.cordoned = slices.ContainsFunc(cluster.Spec.Taints, func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintClusterUnscheduler })
	if !p.o.Direct || cluster.Spec.ID == "" {
		return nil
	}
	system := &corev1.Namespace{}
	if err := p.o.Member.Get(ctx, client.ObjectKey{Name: "kube-system"}, system); err != nil {
		return fmt.Errorf("find out which cluster the kubeconfig leads to: %w", err)
	}
	if string(system.UID) != cluster.Spec.ID {
		return fmt.Errorf("the kubeconfig leads to another cluster than %s: --cluster-context names the context", p.o.Cluster)
	}
	return nil
}

// read returns an object of the member.
func (p *Promotion) read(ctx context.Context, of Object) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(of.GroupVersionKind)
	return live, p.o.Member.Get(ctx, of.key(), live)
}

// item returns the item for a member's object.
func (p *Promotion) item(ctx context.Context, live *unstructured.Unstructured) (Item, error) {
	if item, err := p.earlier.item(ctx, live, p.o); item != nil || err != nil {
		return ptr.Deref(item, Item{}), err
	}
	if err := refuse(live, p.skip, p.o.Cluster); err != nil {
		return Item{}, err
	}
	if err := p.checkServed(ctx, live); err != nil {
		return Item{}, err
	}
	item := Item{Template: templateOf(live), live: live}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(live.GroupVersionKind())
	err := p.o.Hub.Get(ctx, client.ObjectKeyFromObject(live), stored)
	switch {
	case apierrors.IsNotFound(err):
		return item, nil
	case err != nil:
		return Item{}, err
	}
	if !stored.GetDeletionTimestamp().IsZero() {
		return Item{}, fmt.Errorf("%s is being deleted in the control plane: try again once it is gone", objectOf(live))
	}
	if paths := differences(content(item.Template), content(templateOf(stored))); len(paths) > 0 {
		return Item{}, fmt.Errorf("the control plane holds another %s than cluster %s (%s): make them the same, or delete that of the control plane", objectOf(live), p.o.Cluster, listed(paths))
	}
	item.Template, item.There = stored, true
	return item, nil
}

// addPolicy sets the policy, which selects every item by name: Undo gives back what it
// selects.
func (p *Promotion) addPolicy() error {
	policy, stored := p.policy(), p.earlier.policy
	switch {
	case stored == nil:
		p.Policy = policy
		return nil
	case !stored.GetDeletionTimestamp().IsZero():
		return fmt.Errorf("%s is being deleted: try again once it is gone", propagation.Title(stored))
	}
	want, have := policy.PropagationSpec(), stored.PropagationSpec()
	if p.earlier.alike(p.o) && equality.Semantic.DeepEqual(want.ResourceSelectors, have.ResourceSelectors) {
		p.Policy, p.PolicyThere = stored, true
		return nil
	}
	if err := refuse(p.Items[0].live, p.skip, p.o.Cluster); err != nil {
		return err // the policy selects other objects than those that are needed now
	}
	return fmt.Errorf("%s is there already and says something else: --policy-name names another", propagation.Title(stored))
}

// Carry creates everything on the hub, the policy first, so that no other policy claims the
// objects. If a step fails, it deletes what it created, and the member's objects are as they
// were. But if another promotion has created one of the objects meanwhile, everything stays,
// because that promotion relies on what it found.
func (p *Promotion) Carry(ctx context.Context) error {
	var made []client.Object
	all := p.missing()
	for _, obj := range all {
		if err := p.o.Hub.Create(ctx, obj, client.FieldOwner(manager)); err != nil {
			if overtaken(ctx, p.o.Hub, obj, err) {
				return unmade(obj, err)
			}
			return errors.Join(unmade(obj, err), p.rollBack(ctx, made))
		}
		made = append(made, obj)
	}
	return nil
}

// overtaken reports whether an object could not be created because another promotion created
// it.
func overtaken(ctx context.Context, hub client.Reader, obj client.Object, err error) bool {
	if !apierrors.IsAlreadyExists(err) {
		return false
	}
	live, ok := obj.DeepCopyObject().(client.Object)
	return ok && hub.Get(ctx, client.ObjectKeyFromObject(obj), live) == nil && made(live)
}

// unmade explains why an object was not created.
func unmade(obj client.Object, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("somebody else made %s in the control plane meanwhile: run the same again, it goes on from what is there by then", nameOf(obj))
	}
	return fmt.Errorf("make %s: %w", nameOf(obj), err)
}

// timeout is how long it may take to delete what was created.
const timeout = 30 * time.Second

// missing returns the objects that the hub does not have yet, in the order of their creation:
// the promoted object itself is the last.
func (p *Promotion) missing() []client.Object {
	var out []client.Object
	for i := range p.Items {
		if !p.Items[i].There {
			out = append(out, p.Items[i].Template)
		}
	}
	if p.Policy != nil && !p.PolicyThere {
		out = append(out, p.Policy)
	}
	slices.Reverse(out)
	return out
}

func (p *Promotion) rollBack(ctx context.Context, made []client.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	var faults []error
	for _, obj := range slices.Backward(made) {
		uid := obj.GetUID()
		err := p.o.Hub.Delete(ctx, obj, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			faults = append(faults, fmt.Errorf("%s stays in the control plane, remove it: %w", nameOf(obj), err))
		}
	}
	return errors.Join(faults...)
}

// nameOf names an object of the hub.
func nameOf(obj client.Object) string {
	if policy, ok := obj.(policyv1alpha1.Policy); ok {
		return propagation.Title(policy)
	}
	if obj, ok := obj.(*unstructured.Unstructured); ok {
		return objectOf(obj).String()
	}
	return obj.GetName()
}

// content returns an object without metadata and status.
func content(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range obj.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}

// templateOf returns the template for a member's object.
func templateOf(live *unstructured.Unstructured) *unstructured.Unstructured {
	template := live.DeepCopy()
	plan.Prune(template)
	pruneResident(template)
	propagation.Unclaim(template)
	overwrite(template)
	return template
}
