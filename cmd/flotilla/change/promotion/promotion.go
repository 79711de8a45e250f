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

// String is the kind and the name, with the namespace before it.
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

// in says where a member's object is.
func (o Object) in(cluster string) string { return o.String() + " in cluster " + cluster }

// Options say what is promoted, and how.
type Options struct {
	// Cluster is the member that holds the object.
	Cluster string
	// Hub and Member are clients of both sides. The member is read, and asked what
	// a change would do; nothing is written to it.
	Hub, Member client.Client
	// Direct: Member does not lead through the hub's proxy, so that it is checked
	// to be the cluster that the hub knows by this name.
	Direct bool
	// Interpreter knows what objects refer to.
	Interpreter *interpreter.Interpreter
	// Dependencies promotes what the object refers to, too.
	Dependencies bool
	// PolicyName is the name of the policy that is made; empty means the one that
	// karmadactl would give it.
	PolicyName string
	// NoPolicy makes no policy: one that is there carries the object.
	NoPolicy bool
	// AllowChanges goes on although the object would be changed in the member.
	AllowChanges bool
	// Unrehearsed asks neither side what would happen; for a look at what would be
	// made.
	Unrehearsed bool
	// Now dates decisions that are rehearsed.
	Now time.Time
}

// Item is an object that is promoted.
type Item struct {
	// Template is what the hub is to hold.
	Template *unstructured.Unstructured
	// There: the hub holds the same already.
	There bool

	live *unstructured.Unstructured
}

// Promotion is what is made on the hub.
type Promotion struct {
	// Items are the object itself and what it refers to.
	Items []Item
	// Policy carries them; nil where none is to be made.
	Policy policyv1alpha1.Policy
	// PolicyThere: the hub holds the same policy already.
	PolicyThere bool
	// Notes are what users should know beside it.
	Notes []string

	o       Options
	skip    propagation.SkipRules
	earlier earlier
	// cordoned says that the cluster is.
	cordoned bool
}

// Plan says what promoting an object makes, and errs where it would be wrong. It
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

// checkCluster errs unless the cluster can be given work, and is the one that
// the member's client leads to.
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

// item makes the template of a member's object.
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

// addPolicy makes the policy, which selects everything by name: what it selects
// is what Undo gives back.
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
		return err // it is carried already, with other things than it needs now
	}
	return fmt.Errorf("%s is there already and says something else: --policy-name names another", propagation.Title(stored))
}

// Carry makes everything on the hub, the policy first, so that no other policy
// takes the objects. When something fails, what was made is removed again: the
// member's objects are as they were. Where another promotion made the same meanwhile it
// stays, as that one goes by what it found.
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

// overtaken reports whether an object could not be made because another promotion
// made it.
func overtaken(ctx context.Context, hub client.Reader, obj client.Object, err error) bool {
	if !apierrors.IsAlreadyExists(err) {
		return false
	}
	live, ok := obj.DeepCopyObject().(client.Object)
	return ok && hub.Get(ctx, client.ObjectKeyFromObject(obj), live) == nil && made(live)
}

// unmade says why an object was not made.
func unmade(obj client.Object, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("somebody else made %s in the control plane meanwhile: run the same again, it goes on from what is there by then", nameOf(obj))
	}
	return fmt.Errorf("make %s: %w", nameOf(obj), err)
}

// timeout is how long it may take to remove what was made.
const timeout = 30 * time.Second

// missing are the objects that the hub does not hold yet, in the order in which
// they are made: the object itself is the last.
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

// content is what an object says, without metadata.
func content(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for key, value := range obj.Object {
		if key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}

// templateOf makes the template of a member's object.
func templateOf(live *unstructured.Unstructured) *unstructured.Unstructured {
	template := live.DeepCopy()
	plan.Prune(template)
	pruneResident(template)
	propagation.Unclaim(template)
	overwrite(template)
	return template
}
