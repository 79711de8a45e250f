package template

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// claim decides the claim labels and annotations of the template. Later phases
// treat the template as claimed already, so that its binding need not wait for the write.
func claim(_ context.Context, s *state) (loop.Next, error) {
	var claim propagation.Claim
	if s.policy != nil {
		if err := activate(s); err != nil {
			return loop.Next{}, err
		}
		claim = s.activation.Claim(s.policy)
	}
	data, some, err := claimPatch(s.template, claim)
	if err != nil || !some {
		return loop.Next{}, err
	}
	s.claim = data
	claim.Set(s.template)
	// The server keeps no empty maps.
	if len(s.template.GetLabels()) == 0 {
		s.template.SetLabels(nil)
	}
	if len(s.template.GetAnnotations()) == 0 {
		s.template.SetAnnotations(nil)
	}
	return loop.Next{}, nil
}

// activate finds out whether the policy takes effect on the template now, or is Lazy.
func activate(s *state) (err error) {
	if s.activation, err = propagation.Activate(s.template, s.policy, s.binding); err != nil {
		return fmt.Errorf("edition of the template: %w", err)
	}
	if s.activation.Waits {
		s.digest, err = propagation.Digest(s.template)
	}
	return err
}

// claim writes the claim.
func (p writer) claim(ctx context.Context, s *state) error {
	if s.claim == nil {
		return nil
	}
	claimed := &unstructured.Unstructured{}
	claimed.SetGroupVersionKind(s.key.GroupVersionKind)
	claimed.SetNamespace(s.key.Namespace)
	claimed.SetName(s.key.Name)
	if err := p.hub.Patch(ctx, claimed, client.RawPatch(types.MergePatchType, s.claim)); err != nil {
		if bindings.IsStale(err) {
			return nil // deleted or created again: the watch reports that
		}
		if s.from != nil {
			return reported(policyv1alpha1.EventReasonPreemptPolicyFailed, fmt.Errorf("take the template from %s: %w", propagation.Title(s.from), err))
		}
		return reported(policyv1alpha1.EventReasonApplyPolicyFailed, fmt.Errorf("claim the template: %w", err))
	}
	p.put(claimed)
	s.claimed = true
	if s.policy == nil {
		log.FromContext(ctx).Info("released a template")
	} else {
		log.FromContext(ctx).Info("claimed a template", "policy", propagation.RefOf(s.policy).String())
	}
	return nil
}

// claimPatch returns the merge patch that sets exactly this claim on obj, and
// false if it has that already. The patch holds for this object only, not for
// a later one of the same name.
func claimPatch(obj *unstructured.Unstructured, claim propagation.Claim) ([]byte, bool, error) {
	labelKeys, annotationKeys := propagation.ClaimKeys()
	labels := difference(obj.GetLabels(), labelKeys, claim.Labels)
	annotations := difference(obj.GetAnnotations(), annotationKeys, claim.Annotations)
	if len(labels) == 0 && len(annotations) == 0 {
		return nil, false, nil
	}
	metadata := map[string]any{"uid": obj.GetUID()}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, false, fmt.Errorf("encode a claim: %w", err)
	}
	return data, true, nil
}

// difference returns the merge patch after which the keys have the
// wanted values and no others; nil removes a key.
func difference(have map[string]string, keys []string, want map[string]string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		old, had := have[key]
		value, wanted := want[key]
		switch {
		case wanted && (!had || old != value):
			out[key] = value
		case had && !wanted:
			out[key] = nil
		}
	}
	return out
}
