package applier

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa"
	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Labels or annotations by which one object opts out of a rule. The keys and
// values are Flux's.
var (
	group        = kustomizev1.GroupVersion.Group
	notApplied   = map[string]string{group + "/reconcile": kustomizev1.DisabledValue}
	ignored      = map[string]string{group + "/ssa": kustomizev1.IgnoreValue}
	ifNotPresent = map[string]string{group + "/ssa": kustomizev1.IfNotPresentValue}
	merged       = map[string]string{group + "/ssa": kustomizev1.MergeValue}
	recreatable  = map[string]string{group + "/force": kustomizev1.EnabledValue}
	kept         = []map[string]string{{group + "/prune": kustomizev1.DisabledValue}, notApplied}
)

// takenOver are the field managers whose fields become ours, so that a field
// which leaves Git also leaves the hub.
var takenOver = []ssa.FieldManager{
	{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
	{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
	{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
	{Name: FieldManager, OperationType: metav1.ManagedFieldsOperationUpdate, ExactMatch: true},
}

// Skips reports whether an object asks to be left as it is; observed is nil if
// it does not exist.
func Skips(desired, observed *unstructured.Unstructured) bool {
	for _, opt := range []map[string]string{notApplied, ignored} {
		if utils.AnyInMetadata(desired, opt) || (observed != nil && utils.AnyInMetadata(observed, opt)) {
			return true
		}
	}
	return observed != nil && utils.AnyInMetadata(desired, ifNotPresent)
}

// frozen reports whether nothing of an object is to be written, not even its owner labels.
func frozen(desired, observed *unstructured.Unstructured) bool {
	return utils.AnyInMetadata(desired, notApplied) || utils.AnyInMetadata(observed, notApplied)
}

// Shares reports whether an object says that it is written by several, or left to others;
// observed is nil if it does not exist.
func Shares(desired, observed *unstructured.Unstructured) bool {
	return Skips(desired, observed) || utils.AnyInMetadata(desired, merged) || utils.AnyInMetadata(desired, ifNotPresent) ||
		(observed != nil && utils.AnyInMetadata(observed, merged))
}

func forced(desired, observed *unstructured.Unstructured) bool {
	return utils.AnyInMetadata(desired, recreatable) || utils.AnyInMetadata(observed, recreatable)
}

// isImmutable reports whether the server refused to change a field. An answer
// of "invalid" may mean that or another fault of the object.
func isImmutable(err error) bool {
	return !apierrors.IsConflict(err) && ssaerrors.IsImmutableError(err)
}

// differ reports whether an apply, whose dry run had the given outcome, would
// change the observed object.
func differ(set Set, desired, observed, outcome *unstructured.Unstructured) (bool, error) {
	if needsTakeover(desired, observed) {
		return true, nil
	}
	if !apiequality.Semantic.DeepEqual(observed.GetLabels(), outcome.GetLabels()) ||
		!apiequality.Semantic.DeepEqual(observed.GetAnnotations(), outcome.GetAnnotations()) {
		return true, nil
	}
	before, err := comparable(set, observed)
	if err != nil {
		return false, err
	}
	after, err := comparable(set, outcome)
	if err != nil {
		return false, err
	}
	return !apiequality.Semantic.DeepEqual(before, after), nil
}

// disowns reports whether an apply, whose dry run had the given outcome, would change the owner references of the
// observed object. Only references that an earlier apply set are ours to remove.
func disowns(observed, outcome *unstructured.Unstructured) bool {
	return !apiequality.Semantic.DeepEqual(observed.GetOwnerReferences(), outcome.GetOwnerReferences())
}

// needsTakeover reports whether the object has fields of another tool that become ours, or kubectl's
// last-applied annotation. One that is merged is shared with other tools on purpose.
func needsTakeover(desired, observed *unstructured.Unstructured) bool {
	if utils.AnyInMetadata(desired, merged) || utils.AnyInMetadata(observed, merged) {
		return false
	}
	_, traced := observed.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	return traced || len(takeover(desired, observed)) > 0
}

// takeover returns the JSON patch that makes the fields of other tools ours, of the object as it was observed; nil where
// there are none.
func takeover(desired, observed *unstructured.Unstructured) []any {
	if observed == nil || utils.AnyInMetadata(desired, merged) || utils.AnyInMetadata(observed, merged) {
		return nil
	}
	patches, err := ssa.PatchReplaceFieldsManagers(observed, takenOver, FieldManager)
	if err != nil || len(patches) == 0 {
		return nil
	}
	out := []any{map[string]string{"op": "replace", "path": "/metadata/resourceVersion", "value": observed.GetResourceVersion()}}
	for _, patch := range patches {
		out = append(out, patch)
	}
	return out
}

// comparable returns the part of an object that an apply can change, without
// the fields that are to be ignored.
func comparable(set Set, obj *unstructured.Unstructured) (map[string]any, error) {
	out := obj.DeepCopy()
	if err := normalize.DryRunUnstructured(out); err != nil {
		return nil, fmt.Errorf("read %s: %w", inventory.Describe(inventory.IDOf(obj)), err)
	}
	rules, err := jsondiff.CompileIgnoreRules(set.Ignore)
	if err != nil {
		return nil, fmt.Errorf("spec.ignore: %w", err)
	}
	for selector, paths := range rules {
		if !selector.MatchUnstructured(out) {
			continue
		}
		if err := jsondiff.ApplyPatchToUnstructured(out, jsondiff.GenerateRemovePatch(paths...)); err != nil {
			return nil, fmt.Errorf("spec.ignore: %w", err)
		}
	}
	delete(out.Object, "metadata")
	delete(out.Object, "status")
	return out.Object, nil
}

// OptedOut reports whether an object is to stay when it leaves its revision, by its labels and annotations.
func OptedOut(obj metav1.Object) bool {
	marks := &unstructured.Unstructured{Object: map[string]any{}}
	marks.SetLabels(obj.GetLabels())
	marks.SetAnnotations(obj.GetAnnotations())
	for _, opt := range kept {
		if utils.AnyInMetadata(marks, opt) {
			return true
		}
	}
	return false
}
