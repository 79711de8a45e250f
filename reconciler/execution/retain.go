package execution

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

// unruledError says that the rule failed which decides what is left to the
// member. Nothing is sent without it.
type unruledError struct {
	kind schema.GroupVersionKind
	err  error
}

func (e *unruledError) Error() string { return e.err.Error() }
func (e *unruledError) Unwrap() error { return e.err }

// retention decides what is left to members.
type retention struct{ Retainer }

// retain returns what is sent of desired: not what is the member's.
func (r retention) retain(ctx context.Context, s *state, m *manifest, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	if r.Retains(desired) {
		retained, err := r.Retain(desired, live)
		if after, awaits := kinds.Awaits(err); awaits {
			return nil, &blocked{cause: cause{event: onSync, kind: m.gvk}, after: max(after, firstRetry), err: err}
		}
		if err == nil {
			out, err = ownership.Retained(desired, retained, live)
		}
		if err != nil {
			return nil, &unruledError{kind: m.gvk, err: fmt.Errorf("keep what the member set in %s: %w", m.title(), err)}
		}
	}
	keepPullSecrets(out, desired, live)
	if err := leaveReplicas(ctx, s, m, out, desired, live); err != nil {
		return nil, err
	}
	return out, nil
}

// looks says whether a manifest can only be sent once it is known what stands.
// Left says that its replicas were left to the member before.
func (r retention) looks(desired *unstructured.Unstructured, to target, sentBefore, left bool) bool {
	if r.Retains(desired) {
		return true
	}
	if isServiceAccount(desired) && (sentBefore || to.presence == members.Present) {
		return true
	}
	return leavesReplicas(desired) && (sentBefore || to.presence == members.Present && (left || to.observed.Scaled))
}

// leavesReplicas says whether a manifest asks for a number of replicas that
// something in the member may set.
func leavesReplicas(desired *unstructured.Unstructured) bool {
	_, asks := replicas(desired)
	return asks && !rules.ForcesReplicas(desired)
}

func replicas(obj *unstructured.Unstructured) (int64, bool) {
	n, found, err := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	return n, found && err == nil
}

// leaveReplicas leaves the number of replicas out of what is sent where something
// in the member scales the object. It is sent again once the manifest asks for
// another number than it did then, and no HorizontalPodAutoscaler is at it. A
// number that a person set meanwhile changes nothing while there is one.
func leaveReplicas(ctx context.Context, s *state, m *manifest, out, desired, live *unstructured.Unstructured) error {
	record, scaled := &s.applied[m.ordinal], rules.Scaled(live)
	if !leavesReplicas(desired) || !scaled && (record.Replicas == nil || rules.Applied(live, "f:spec", "f:replicas")) {
		record.Replicas = nil
		return nil
	}
	n, _ := replicas(desired)
	if !scaled || record.Replicas != nil && *record.Replicas != n && !rules.RetainsReplicas(desired) {
		by, err := s.member.Autoscaled(ctx, m.gvk, m.key)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err): // it will not say
			log.FromContext(ctx).V(1).Info("Who scales is not known", "reason", err.Error())
			by = scaled
		case err != nil:
			return err
		}
		if !by {
			record.Replicas = nil
			if scaled {
				_ = unstructured.SetNestedField(out.Object, n, "spec", "replicas") // it was there
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

// keepPullSecrets settles the image pull secrets of a service account, which are
// one field: those that the member added stay, those that were in the manifest
// before go.
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
