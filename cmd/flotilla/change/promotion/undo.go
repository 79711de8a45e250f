package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// UndoOptions configure Undo.
type UndoOptions struct {
	// Cluster is the member that gets the object back.
	Cluster string
	// Hub is read and written. In Member, only the fleet's share in the object's managed
	// fields is removed.
	Hub, Member client.Client
	// PolicyName is the name of the policy of the promotion; empty means the default name.
	PolicyName string
	// Within is how long the loops may take to release the objects.
	Within time.Duration
	// DryRun returns what would be given back, and writes nothing.
	DryRun bool
}

// Returned is what Undo gave back, or would.
type Returned struct {
	// Objects belong to the member alone again.
	Objects []Object
	// Kept are those objects whose templates stay on the hub, without a policy, because they
	// existed before the promotion.
	Kept []Object
	// Policy is the title of the policy that propagated them.
	Policy string
	// PolicyKept is true if the policy stays because no promotion created it.
	PolicyKept bool
	// Notes are what users should know beside it.
	Notes []string
}

// undo is one call of Undo.
type undo struct {
	UndoOptions
	policy   policyv1alpha1.Policy
	gone     bool // the policy is gone after an interrupted Undo
	given    []given
	returned Returned
}

// given is one object that is given back.
type given struct {
	Object
	template *unstructured.Unstructured // nil if already deleted
	kept     bool                       // the template existed before the promotion
}

// Undo gives promoted objects back to the member: they keep running there and leave the
// fleet. It deletes first the templates that a promotion created, then, once the member's
// objects are released, the policy if a promotion created it. Objects whose templates stay
// come last, because they can be released only once the policy is gone. If it is
// interrupted, it can be called again.
func Undo(ctx context.Context, of Object, o UndoOptions) (*Returned, error) {
	u := &undo{UndoOptions: o, policy: emptyPolicy(of, o.PolicyName)}
	if err := u.find(ctx, of); err != nil {
		return nil, err
	}
	u.returned.Policy = propagation.Title(u.policy)
	for _, g := range u.given {
		u.returned.Objects = append(u.returned.Objects, g.Object)
		if g.kept {
			u.returned.Kept = append(u.returned.Kept, g.Object)
		}
		if err := u.check(ctx, g); err != nil {
			return nil, err
		}
	}
	if u.DryRun {
		return &u.returned, nil
	}
	return &u.returned, u.giveBack(ctx)
}

// giveBack runs the steps of Undo, each for all objects.
func (u *undo) giveBack(ctx context.Context) error {
	own := slices.DeleteFunc(slices.Clone(u.given), func(g given) bool { return g.kept })
	kept := slices.DeleteFunc(slices.Clone(u.given), func(g given) bool { return !g.kept })
	each := func(of []given, steps ...func(context.Context, given) error) error {
		for _, step := range steps {
			for _, g := range of {
				if err := step(ctx, g); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := each(u.given, u.preserved); err != nil {
		return err
	}
	if err := each(own, u.remove, u.released); err != nil {
		return err
	}
	if err := each(kept, u.annotate); err != nil {
		return err
	}
	if !u.returned.PolicyKept && !u.gone {
		err := u.Hub.Delete(ctx, u.policy, client.Preconditions{UID: ptr.To(u.policy.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return each(kept, u.unbind, u.released)
}

// find reads the policy and what it selects.
func (u *undo) find(ctx context.Context, of Object) error {
	policy, err := readPolicy(ctx, u.Hub, of, u.PolicyName)
	if apierrors.IsNotFound(err) {
		return u.resume(ctx, of)
	}
	if err != nil {
		return err
	}
	u.policy = policy
	title := propagation.Title(u.policy)
	u.returned.PolicyKept = !made(u.policy)
	spec := u.policy.PropagationSpec()
	if !returns(spec) {
		return fmt.Errorf("%s has no preserveResourcesOnDeletion: what runs in cluster %s would be removed; set it first", title, u.Cluster)
	}
	if named := propagation.WantedClusters(&spec.Placement, ""); len(named) == 1 && named[0] != u.Cluster && only(spec, named[0]) {
		return fmt.Errorf("%s is about cluster %s, and not %s: name that with --cluster", title, named[0], u.Cluster)
	}
	if !only(spec, u.Cluster) {
		return fmt.Errorf("%s is about more than cluster %s, where copies would be left behind: leave only that cluster in its clusterNames first", title, u.Cluster)
	}
	found := false
	for _, s := range spec.ResourceSelectors {
		if s.Name == "" {
			return fmt.Errorf("%s selects more than was promoted: leave only selectors with a name in it first", title)
		}
		g := given{Object: selected(u.policy, s)}
		found = found || g.Object == of
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(g.GroupVersionKind)
		switch err := u.Hub.Get(ctx, g.key(), template); {
		case err == nil:
			g.template, g.kept = template, !made(template)
		case !apierrors.IsNotFound(err):
			return err
		}
		u.given = append(u.given, g)
	}
	if !found {
		return fmt.Errorf("%s does not select %s: --policy-name names another", title, of)
	}
	return nil
}

// check returns an error if giving back an object would be wrong.
func (u *undo) check(ctx context.Context, g given) error {
	if g.template == nil {
		return nil
	}
	if ref, claimed := propagation.Claimed(g.template); claimed && ref.ID != propagation.RefOf(u.policy).ID {
		return fmt.Errorf("%s is carried by the policy %s now: take it out of %s first", g.Object, ref, propagation.Title(u.policy))
	}
	if g.kept && u.returned.PolicyKept {
		return fmt.Errorf("%s and %s were in the control plane before it was promoted: take it out of the policy to have it carried no longer", g.Object, propagation.Title(u.policy))
	}
	labels := g.template.GetLabels()
	if name := labels["kustomize.toolkit.fluxcd.io/name"]; name != "" && !g.kept {
		return fmt.Errorf("%s is kept by Kustomization %s/%s: take it out of Git first", g.Object, labels["kustomize.toolkit.fluxcd.io/namespace"], name)
	}
	if labels[workv1alpha2.DeletionProtectionLabelKey] == workv1alpha2.DeletionProtectionAlways && !g.kept {
		return fmt.Errorf("%s is protected from deletion: take the label %s off first", g.Object, workv1alpha2.DeletionProtectionLabelKey)
	}
	binding, err := bindingOf(ctx, u.Hub, g.Object)
	if binding == nil || err != nil {
		return err
	}
	spec := binding.BindingSpec()
	for _, target := range spec.Clusters {
		if target.Name != u.Cluster {
			return fmt.Errorf("%s still runs in cluster %s: try again once it has left", g.Object, target.Name)
		}
	}
	for _, user := range spec.RequiredBy {
		if !u.gives(user) {
			return fmt.Errorf("%s goes along with what the binding %s/%s is of: give that back first", g.Object, user.Namespace, user.Name)
		}
	}
	return nil
}

// gives reports whether the object of a binding is given back as well.
func (u *undo) gives(user workv1alpha2.BindingSnapshot) bool {
	for _, g := range u.given {
		if g.Namespace == user.Namespace && workv1alpha2.BindingName(g.Kind, g.Name) == user.Name {
			return true
		}
	}
	return false
}

// bindingOf returns the binding of an object; nil if it has none.
func bindingOf(ctx context.Context, hub client.Reader, of Object) (workv1alpha2.Binding, error) {
	var b interface {
		client.Object
		workv1alpha2.Binding
	} = &workv1alpha2.ResourceBinding{}
	if of.Namespace == "" {
		b = &workv1alpha2.ClusterResourceBinding{}
	}
	key := client.ObjectKey{Namespace: of.Namespace, Name: workv1alpha2.BindingName(of.Kind, of.Name)}
	if err := hub.Get(ctx, key, b); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return b, nil
}

// work returns the Work of an object in the cluster; nil if there is none.
func (u *undo) work(ctx context.Context, of Object) (*workv1alpha1.Work, error) {
	for _, name := range []string{
		workv1alpha2.WorkName(of.Kind, of.Name, of.Namespace), workv1alpha2.FormerWorkName(of.Kind, of.Name, of.Namespace), // on a hub that is older
	} {
		work := &workv1alpha1.Work{}
		err := u.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(u.Cluster), Name: name}, work)
		if !apierrors.IsNotFound(err) {
			return work, err
		}
	}
	return nil, nil
}

// preserved waits until the loops have recorded that the object must stay in the member.
func (u *undo) preserved(ctx context.Context, g given) error {
	if g.template == nil {
		return nil
	}
	return u.await(ctx, g.in(u.Cluster)+" is not known yet to be preserved: nothing was given back, try again", func(ctx context.Context) (bool, error) {
		binding, err := bindingOf(ctx, u.Hub, g.Object)
		if err != nil || binding == nil {
			return binding == nil && err == nil, err
		}
		work, err := u.work(ctx, g.Object)
		if err != nil {
			return false, err
		}
		return ptr.Deref(binding.BindingSpec().PreserveResourcesOnDeletion, false) &&
			(work == nil || ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false)), nil
	})
}

// remove deletes the template that was checked, and no later one of the same name.
func (u *undo) remove(ctx context.Context, g given) error {
	if g.template == nil {
		return nil
	}
	err := u.Hub.Delete(ctx, g.template, client.Preconditions{UID: ptr.To(g.template.GetUID())}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// stays returns a note that the policy stays until an object is given back; empty if it stays
// or goes for other reasons.
func (u *undo) stays(g given) string {
	if g.kept || u.returned.PolicyKept {
		return ""
	}
	return "; " + propagation.Title(u.policy) + " stays until it does not"
}

// released waits until the member's object is released.
func (u *undo) released(ctx context.Context, g given) error {
	late := fmt.Sprintf("%s still bears our labels%s. Is the cluster ready? Then try again", g.in(u.Cluster), u.stays(g))
	err := u.await(ctx, late, func(ctx context.Context) (bool, error) {
		binding, err := bindingOf(ctx, u.Hub, g.Object)
		if err != nil || binding != nil {
			return false, err
		}
		work, err := u.work(ctx, g.Object)
		return work == nil, err
	})
	if err != nil {
		return err
	}
	return u.disown(ctx, g, late)
}

// await polls the hub until done returns true. If that takes longer than Within, it returns an
// error with the text late.
func (u *undo) await(ctx context.Context, late string, done func(context.Context) (bool, error)) error {
	err := wait.PollUntilContextTimeout(ctx, pollEvery, u.Within, true, done)
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.New(late)
	}
	return err
}

// pollEvery is how often the hub is polled while a person waits.
const pollEvery = 200 * time.Millisecond
