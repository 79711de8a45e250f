package bindings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/hub"
)

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the JSON patch from current to desired, and false if there is
// nothing to write. It covers labels, annotations, owner references, finalizers
// and the spec, and fails on the server where current is another object or has
// another spec by then: see IsStale.
func Patch(current, desired workv1alpha2.Binding) (client.Patch, bool, error) {
	return patch(current, desired)
}

// PatchOfRecord is Patch for who writes into the decision record of another: it fails where
// that is another one by then, too, of which the generation says nothing.
func PatchOfRecord(current, desired workv1alpha2.Binding) (client.Patch, bool, error) {
	const key = workv1alpha2.SchedulingDecisionAnnotation
	record, had := current.GetAnnotations()[key]
	if !had || desired.GetAnnotations()[key] == record {
		return patch(current, desired)
	}
	return patch(current, desired, operation{"test", "/metadata/annotations/" + pointer.Replace(key), record})
}

func patch(current, desired workv1alpha2.Binding, holds ...operation) (client.Patch, bool, error) {
	ops := changed(nil, "/metadata/labels", current.GetLabels(), desired.GetLabels())
	ops = changed(ops, "/metadata/annotations", current.GetAnnotations(), desired.GetAnnotations())
	if !equality.Semantic.DeepEqual(current.GetOwnerReferences(), desired.GetOwnerReferences()) {
		ops = append(ops, operation{"add", "/metadata/ownerReferences", desired.GetOwnerReferences()})
	}
	if !equality.Semantic.DeepEqual(current.GetFinalizers(), desired.GetFinalizers()) {
		ops = append(ops, operation{"add", "/metadata/finalizers", desired.GetFinalizers()})
	}
	if !equality.Semantic.DeepEqual(current.BindingSpec(), desired.BindingSpec()) {
		spec, err := specChanges(current.BindingSpec(), desired.BindingSpec())
		if err != nil {
			return nil, false, err
		}
		ops = append(ops, spec...)
	}
	if len(ops) == 0 {
		return nil, false, nil
	}
	guard := []operation{
		{"test", "/metadata/uid", current.GetUID()},
		{"test", "/metadata/generation", current.GetGeneration()},
	}
	data, err := json.Marshal(slices.Concat(guard, holds, ops))
	if err != nil {
		return nil, false, fmt.Errorf("encode the patch of a binding: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), true, nil
}

// WithoutFinalizer returns the patch that takes a finalizer off obj, and false
// if it is not there. The patch holds for the list of finalizers as it is.
func WithoutFinalizer(obj client.Object, finalizer string) (client.Patch, bool) {
	at := slices.Index(obj.GetFinalizers(), finalizer)
	if at < 0 {
		return nil, false
	}
	// A finalizer is a qualified name and needs no escaping.
	data := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/finalizers/%d","value":%q},{"op":"remove","path":"/metadata/finalizers/%d"}]`, at, finalizer, at)
	return client.RawPatch(types.JSONPatchType, data), true
}

// IsStale reports whether err is the server's answer to a patch that was made for
// another state of the object, or for one that is gone. Nothing was written;
// what the cache shows next decides.
func IsStale(err error) bool {
	return apierrors.IsConflict(err) || hub.Gone(err)
}

// IsRefused reports whether err is the server's considered no: the same request
// would be refused again, which users should hear of. Everything else may pass.
func IsRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// changed adds the operations that turn one map of metadata into another.
func changed(ops []operation, path string, from, to map[string]string) []operation {
	if len(from) == 0 {
		if len(to) > 0 {
			ops = append(ops, operation{"add", path, to})
		}
		return ops
	}
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if value, had := from[key]; !had || value != to[key] {
			ops = append(ops, operation{"add", path + "/" + pointer.Replace(key), to[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, kept := to[key]; !kept {
			ops = append(ops, operation{Op: "remove", Path: path + "/" + pointer.Replace(key)})
		}
	}
	return ops
}

// pointer escapes a map key for a JSON pointer.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// specChanges returns the operations for the fields of the spec that differ.
func specChanges(from, to *workv1alpha2.ResourceBindingSpec) ([]operation, error) {
	before, err := fields(from)
	if err != nil {
		return nil, err
	}
	after, err := fields(to)
	if err != nil {
		return nil, err
	}
	var ops []operation
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if string(before[name]) != string(after[name]) {
			ops = append(ops, operation{"add", "/spec/" + name, after[name]})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[name]; !kept {
			ops = append(ops, operation{Op: "remove", Path: "/spec/" + name})
		}
	}
	return ops, nil
}

func fields(spec *workv1alpha2.ResourceBindingSpec) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the spec of a binding: %w", err)
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read back the spec of a binding: %w", err)
	}
	return out, nil
}
