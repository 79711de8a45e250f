package rules

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// DropChanged returns a rule that leaves out the field at the path where the
// member has another value. Who changed it owns it by then, so leaving it out
// does not reset it; an equal value may stay, as leaving it out would.
func DropChanged(path ...string) func(desired, observed kinds.Object) (kinds.Object, error) {
	return func(desired, observed kinds.Object) (kinds.Object, error) {
		want, have := Value(desired.Object, path...), Value(observed.Object, path...)
		if want == nil || have == nil || equality.Semantic.DeepEqual(want, have) {
			return desired, nil
		}
		return Without(desired, path...), nil
	}
}

// RetainReplicas keeps the member's replicas where the template's label asks
// for it.
func RetainReplicas(desired, observed kinds.Object) (kinds.Object, error) {
	if !RetainsReplicas(desired) {
		return desired, nil
	}
	return DropChanged("spec", "replicas")(desired, observed)
}

// RetainsReplicas reports whether the template's label asks to keep the member's
// replicas.
func RetainsReplicas(desired kinds.Object) bool {
	return desired.GetLabels()[workv1alpha2.RetainReplicasLabel] == workv1alpha2.RetainReplicasValue
}

// ForcesReplicas reports whether the template's label asks not to keep the
// member's replicas, whatever scales them there.
func ForcesReplicas(desired kinds.Object) bool {
	return desired.GetLabels()[workv1alpha2.RetainReplicasLabel] == "false"
}

// people are the names of programs that persons run, up to the first mark in
// them: a number that somebody typed in is no autoscaler's.
var people = []string{"kubectl", "oc", "k9s", "Lens", "Mozilla", "curl"}

// Scaled reports whether spec.replicas of a member's object belongs to something
// that scales it there: it was last set through the subresource for that, and
// not by a person. The object has to have its managed fields.
func Scaled(observed kinds.Object) bool {
	return slices.ContainsFunc(managers(observed), func(entry map[string]any) bool {
		return Text(entry, "subresource") == "scale" && !isPerson(Text(entry, "manager")) &&
			Value(entry, "fieldsV1", "f:spec", "f:replicas") != nil
	})
}

func isPerson(manager string) bool {
	name := strings.FieldsFunc(manager, func(r rune) bool { return strings.ContainsRune("-_./ ", r) })
	return len(name) > 0 && slices.Contains(people, name[0])
}

// Manager is the name under which objects are applied to members.
const Manager = "flotilla"

// Applied reports whether a field of a member's object is one that was applied
// from here. The path is that of managed fields, such as f:spec, f:replicas.
// The object has to have its managed fields.
func Applied(observed kinds.Object, path ...string) bool {
	return slices.ContainsFunc(managers(observed), func(entry map[string]any) bool {
		return Text(entry, "manager") == Manager && Text(entry, "operation") == string(metav1.ManagedFieldsOperationApply) &&
			Text(entry, "subresource") == "" && Value(Object(entry, "fieldsV1"), path...) != nil
	})
}

func managers(observed kinds.Object) []map[string]any {
	return Objects(observed.Object, "metadata", "managedFields")
}
