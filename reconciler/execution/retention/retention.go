package retention

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
	"github.com/flotilla-io/flotilla/reconciler/execution/backoff"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Retainer decides which fields of a manifest are left to the member.
type Retainer interface {
	// Retains reports whether there is a rule for the object, so that Retain needs the object in the member.
	Retains(desired *unstructured.Unstructured) bool
	// Retain returns what is applied: desired without the fields that belong to the
	// member.
	Retain(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Fault is the error of the rule that decides what is left to the member.
// Nothing is sent without its answer.
type Fault struct {
	// Kind is that of the object.
	Kind schema.GroupVersionKind
	err  error
}

func (f *Fault) Error() string { return f.err.Error() }

// Unwrap returns the error of the rule.
func (f *Fault) Unwrap() error { return f.err }

// Member reads a member cluster.
type Member interface {
	// Autoscaled reports whether something scales an object there.
	Autoscaled(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (bool, error)
}

// Retention decides what is left to members.
type Retention struct{ Retainer }

// Retain returns what is sent of desired: without the fields that belong to the member. It records in
// record whether replicas are left to the member. The error is a *waitqueue.Blocked while the rule's
// answer is on its way, a *Fault, or one of the member.
func (r Retention) Retain(ctx context.Context, edge Member, desired, live *unstructured.Unstructured, record *workv1alpha1.AppliedHash) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	if r.Retains(desired) {
		retained, err := r.Retainer.Retain(desired, live)
		if after, awaits := kinds.Awaits(err); awaits {
			return nil, awaited(desired.GroupVersionKind(), after, err)
		}
		if err == nil {
			out, err = ownership.Retained(desired, retained, live)
		}
		if err != nil {
			return nil, &Fault{Kind: desired.GroupVersionKind(), err: fmt.Errorf("keep what the member set in %s %s: %w", desired.GetKind(), name(desired), err)}
		}
	}
	keepPullSecrets(out, desired, live)
	if err := leaveReplicas(ctx, edge, out, desired, live, record); err != nil {
		return nil, err
	}
	return out, nil
}

// awaited returns the error for a rule whose answer is not there yet. The answer is followed by an event of the kind's
// watch.
func awaited(kind schema.GroupVersionKind, after time.Duration, err error) error {
	return &waitqueue.Blocked{Cause: waitqueue.Cause{Event: waitqueue.OnSync, Kind: kind}, After: max(after, backoff.FirstRetry), Err: err}
}

func name(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}

// MustRead reports whether the object in the member has to be read before a manifest is sent.
// there is what the watch has of the object, and nil if it has none;
// sentBefore says that there may be one all the same, and left that its replicas
// were left to the member before.
func (r Retention) MustRead(desired *unstructured.Unstructured, there *members.Observed, sentBefore, left bool) bool {
	if r.Retains(desired) {
		return true
	}
	if isServiceAccount(desired) && (sentBefore || there != nil) {
		return true
	}
	return leavesReplicas(desired) && (sentBefore || there != nil && (left || there.Scaled))
}

// leavesReplicas reports whether a manifest has a number of replicas that
// something in the member may change.
func leavesReplicas(desired *unstructured.Unstructured) bool {
	_, asks := replicas(desired)
	return asks && !rules.ForcesReplicas(desired)
}

func replicas(obj *unstructured.Unstructured) (int64, bool) {
	n, found, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return n, found && err == nil
}

// leaveReplicas removes the number of replicas from what is sent if something
// in the member scales the object. It is sent again once the number in the manifest
// changes and no autoscaler scales the object any more. While one does, a
// change of the number in the manifest has no effect.
func leaveReplicas(ctx context.Context, edge Member, out, desired, live *unstructured.Unstructured, record *workv1alpha1.AppliedHash) error {
	scaled := rules.Scaled(live)
	if !leavesReplicas(desired) || !scaled && (record.Replicas == nil || rules.Applied(live, "f:spec", "f:replicas")) {
		record.Replicas = nil
		return nil
	}
	n, _ := replicas(desired)
	if !scaled || record.Replicas != nil && *record.Replicas != n && !rules.RetainsReplicas(desired) {
		by, err := edge.Autoscaled(ctx, desired.GroupVersionKind(), client.ObjectKeyFromObject(desired))
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err): // autoscalers cannot be read
			log.FromContext(ctx).V(1).Info("Who scales is not known", "reason", err.Error())
			by = scaled
		case err != nil:
			return err
		}
		if !by {
			record.Replicas = nil
			if scaled {
				_ = unstructured.SetNestedField(out.Object, n, "spec", "replicas") // cannot fail: desired has it
			}
			return nil
		}
	}
	unstructured.RemoveNestedField(out.Object, "spec", "replicas")
	if record.Replicas == nil {
		record.Replicas = &n
	}
	return nil
}

func isServiceAccount(obj *unstructured.Unstructured) bool {
	return obj.GetAPIVersion() == "v1" && obj.GetKind() == "ServiceAccount"
}

// keepPullSecrets merges the image pull secrets of a service account, which have
// one owner as a whole: those that the member added stay, those that were in an earlier
// manifest are removed.
func keepPullSecrets(out, desired, live *unstructured.Unstructured) {
	if !isServiceAccount(desired) {
		return
	}
	const field = "imagePullSecrets"
	recorded, ours := live.GetAnnotations()[workv1alpha2.PullSecretsAnnotation], rules.Applied(live, "f:"+field)
	there, _, _ := unstructured.NestedSlice(live.Object, field)
	if !ours && recorded == "" || len(there) == 0 {
		return
	}
	wanted := namesOf(desired.Object[field])
	former := map[string]bool{}
	for name := range strings.SplitSeq(recorded, ",") {
		former[name] = !wanted[name]
	}
	all, _, _ := unstructured.NestedSlice(desired.Object, field)
	for _, ref := range there {
		if name := nameOf(ref); !wanted[name] && !former[name] {
			all = append(all, ref)
		}
	}
	if len(all) == 0 || !ours && equality.Semantic.DeepEqual(all, there) {
		delete(out.Object, field)
		return
	}
	out.Object[field] = all
}

func nameOf(ref any) string {
	object, _ := ref.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

func namesOf(refs any) map[string]bool {
	out := map[string]bool{}
	list, _ := refs.([]any)
	for _, ref := range list {
		out[nameOf(ref)] = true
	}
	return out
}
