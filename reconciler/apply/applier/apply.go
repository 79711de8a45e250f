package applier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/omissions"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
)

// recreatePoll is the pause between looks at whether a deleted object is gone, before it is created again.
const recreatePoll = 200 * time.Millisecond

// Apply carries out a plan. It writes definitions first. Before it writes anything else, it
// checks all objects that had to wait for them, and calls begin.
//
// It returns done=false if a kind that comes with the set is not served yet: the caller
// checks again soon. Errors are those of Check, and those of single writes.
// A write that fails does not keep back other objects of its stage, but no later
// stage is written.
func (a *Applier) Apply(ctx context.Context, plan Plan, seen Observed, begin func(context.Context) error) (done bool, err error) {
	stages := [...]inventory.Stage{inventory.Definitions, inventory.Overrides, inventory.Policies, inventory.Templates, inventory.Hooks}
	for _, stage := range stages {
		if stage != inventory.Definitions {
			done, err := a.checkRest(ctx, plan, seen)
			if err != nil || !done {
				return done, err
			}
		}
		if stage == inventory.Definitions+1 {
			if err := begin(ctx); err != nil {
				return false, err
			}
		}
		if err := a.applyStage(ctx, plan, stage); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkRest compares the objects that could not be compared before. It returns false if
// some of them still cannot be, and then compares none.
func (a *Applier) checkRest(ctx context.Context, plan Plan, seen Observed) (bool, error) {
	var waiting []int
	for i, c := range plan.Changes {
		if c.Action == later {
			waiting = append(waiting, i)
		}
	}
	ready, err := a.survey(ctx, plan, waiting)
	if err != nil || len(ready) < len(waiting) {
		return false, err
	}
	return true, a.compare(ctx, plan, ready, seen)
}

func (a *Applier) applyStage(ctx context.Context, plan Plan, stage inventory.Stage) error {
	var changes []*Change
	for i := range plan.Changes {
		if c := &plan.Changes[i]; inventory.StageOf(c.Desired.GroupVersionKind().GroupKind()) == stage {
			changes = append(changes, c)
		}
	}
	first, last := tokensLast(changes)
	write := func(ctx context.Context, c *Change) error {
		if err := secrets.Worded(c.Desired, a.applyOne(ctx, plan.set, c)); err != nil {
			return fmt.Errorf("apply %s: %w", inventory.Describe(inventory.IDOf(c.Desired)), err)
		}
		return nil
	}
	if err := each(ctx, a.opts.Parallel, first, write); err != nil {
		return err
	}
	return each(ctx, a.opts.Parallel, last, write)
}

func (a *Applier) applyOne(ctx context.Context, set Set, c *Change) error {
	switch c.Action {
	case Created:
		return send(ctx, set, c, &a.memory)
	case Configured, Recreated:
		if err := takeOver(ctx, set.Writer, c); err != nil {
			return err
		}
		writer := &versioning{Client: set.Writer}
		manager := ssa.NewResourceManager(writer, nil, ssa.Owner{Field: FieldManager, Group: kustomizev1.GroupVersion.Group})
		_, err := manager.ApplyAll(ctx, []*unstructured.Unstructured{c.Desired.DeepCopy()}, ssa.ApplyOptions{
			Force:            c.Action == Recreated,
			DriftIgnoreRules: set.Ignore,
			WaitInterval:     recreatePoll,
			Cleanup: ssa.ApplyCleanupOptions{
				Annotations:   []string{corev1.LastAppliedConfigAnnotation},
				FieldManagers: takenOver,
				Exclusions:    merged,
			},
			MigrateAPIVersion: true,
		})
		c.Version = writer.version
		if err == nil && c.disowns { // ApplyAll does not compare owner references, and may have written nothing
			return send(ctx, set, c, &a.memory)
		}
		return err
	case Skipped:
		return relabel(ctx, set, c)
	default:
		return nil
	}
}

// takeOver makes the fields of other tools ours before an object is applied, where it would be refused else.
func takeOver(ctx context.Context, writer client.Client, c *Change) error {
	if len(c.takeover) == 0 {
		return nil
	}
	data, err := json.Marshal(c.takeover)
	if err != nil {
		return fmt.Errorf("encode who owns %s: %w", inventory.Describe(inventory.IDOf(c.Desired)), err)
	}
	return writer.Patch(ctx, c.Desired.DeepCopy(), client.RawPatch(types.JSONPatchType, data), client.FieldOwner(FieldManager))
}

// send applies an object without a dry run, and remembers what the server made of it.
func send(ctx context.Context, set Set, c *Change, known *memory) error {
	outcome := c.Desired.DeepCopy()
	err := set.Writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(outcome), client.ForceOwnership, client.FieldOwner(FieldManager))
	if err == nil {
		c.Version = outcome.GetResourceVersion()
		known.put(set.Owner, c.Desired, outcome)
	}
	return err
}

// relabel writes the owner labels of an object that is otherwise left as it is. It patches them alone, as an apply of
// nothing but labels would remove all other fields that our field manager owns.
func relabel(ctx context.Context, set Set, c *Change) error {
	if !c.Takes {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": inventory.OwnerLabels(set.Owner)}})
	if err != nil {
		return fmt.Errorf("encode the labels: %w", err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(c.Desired.GroupVersionKind())
	live.SetNamespace(c.Desired.GetNamespace())
	live.SetName(c.Desired.GetName())
	if err := set.Writer.Patch(ctx, live, client.RawPatch(types.MergePatchType, data), client.FieldOwner(FieldManager)); err != nil {
		return client.IgnoreNotFound(err)
	}
	c.Version = live.GetResourceVersion()
	return nil
}

// versioning is a client for one object that records the resource version which its last patch made: ssa does not
// return it.
type versioning struct {
	client.Client
	version string
}

func (v *versioning) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	err := v.Client.Patch(ctx, obj, patch, opts...)
	if asked := (&client.PatchOptions{}).ApplyOptions(opts); err == nil && len(asked.DryRun) == 0 {
		v.version = obj.GetResourceVersion()
	}
	return err
}

// Prunable returns those of the removed entries that would truly be deleted:
// they exist, carry the owner's labels, are not being deleted already and have
// not opted out. Objects that package omissions leaves out of revisions stay, too. An earlier
// version may have applied them, and the control plane itself may depend on them.
func Prunable(removed []inventory.Entry, seen Observed) []inventory.Entry {
	return slices.DeleteFunc(PrunableRemote(removed, seen), func(e inventory.Entry) bool {
		owner, _ := inventory.OwnerOf(seen[e.ID])
		return omissions.Whole(seen[e.ID], owner.Namespace)
	})
}

// PrunableRemote does so for objects in a cluster outside of the fleet, of whose revisions nothing is left out.
func PrunableRemote(removed []inventory.Entry, seen Observed) []inventory.Entry {
	var out []inventory.Entry
	for _, e := range removed {
		if obj := seen[e.ID]; obj != nil && obj.GetDeletionTimestamp() == nil && !OptedOut(obj) {
			out = append(out, e)
		}
	}
	return out
}

// Prune deletes the given entries in the reverse order of their apply: each in the incarnation (UID) that was
// seen, and only as long as it is the owner's. A deletion that fails does not keep back the others of
// its stage. Once all others are deleted, it returns a *Refusal of those that the writer may not
// delete. Options go along with every deletion; client.DryRunAll only asks the server.
func (a *Applier) Prune(ctx context.Context, owner types.NamespacedName, writer client.Client, entries []inventory.Entry, seen Observed, opts ...client.DeleteOption) error {
	inventory.SortForRemoval(entries)
	var denied denials
	for len(entries) > 0 {
		stage := inventory.StageOf(entries[0].ID.GroupKind)
		n := 1
		for n < len(entries) && inventory.StageOf(entries[n].ID.GroupKind) == stage {
			n++
		}
		err := each(ctx, a.opts.Parallel, entries[:n], func(ctx context.Context, e inventory.Entry) error {
			return denied.take(e.ID, a.deleteSeen(ctx, owner, writer, seen[e.ID], opts))
		})
		if err != nil {
			return err
		}
		entries = entries[n:]
	}
	return refuse(denied.findings)
}

// denials are the deletions that the server did not allow.
type denials struct {
	mu       sync.Mutex
	findings []Finding
}

// take keeps a denial, and returns any other error.
func (d *denials) take(id inventory.ID, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.findings = append(d.findings, *findingOf(id, err))
	return nil
}

// deleteTries is how many times a deletion is tried of an object that keeps changing meanwhile.
const deleteTries = 5

// deleteSeen deletes an object in the incarnation that was seen, unless another Kustomization has
// taken it meanwhile. The precondition on the version makes sure of that: on a conflict the owner is read again.
func (a *Applier) deleteSeen(ctx context.Context, owner types.NamespacedName, writer client.Client, obj *unstructured.Unstructured, opts []client.DeleteOption) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	for range deleteTries {
		err := writer.Delete(ctx, obj, append([]client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy("Background")}, opts...)...)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s: %w", inventory.Describe(inventory.IDOf(obj)), err)
		}
		live, err := a.reader.get(ctx, obj)
		if err != nil {
			return err
		}
		if live == nil || live.GetUID() != uid {
			return nil // another object has this name by now: it is not ours
		}
		if has, _ := inventory.OwnerOf(live); has != owner {
			return nil
		}
		version = live.GetResourceVersion()
	}
	return fmt.Errorf("delete %s: it changes too often", inventory.Describe(inventory.IDOf(obj)))
}
