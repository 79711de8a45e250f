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
// member has another value. By then the field belongs to whoever changed it, so
// leaving it out does not reset it. An equal value is not left out: server-side
// apply would remove it where Flotilla is its only owner.
func DropChanged(path ...string) func(desired, observed kinds.Object) (kinds.Object, error) {
	return func(desired, observed kinds.Object) (kinds.Object, error) {
		want, have := Value(desired.Object, path...), Value(observed.Object, path...)
		if want == nil || have == nil || equality.Semantic.DeepEqual(want, have) {
			return desired, nil
		}
		return Without(desired, path...), nil
	}
}

// RetainReplicas leaves out the replicas where the template's label asks to keep
// the member's.
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

// ForcesReplicas reports whether the template's label asks to apply its replicas,
// whatever scales the object in the member.
func ForcesReplicas(desired kinds.Object) bool {
	return desired.GetLabels()[workv1alpha2.RetainReplicasLabel] == "false"
}

// people are the names, up to the first separator, of field managers that stand
// for persons: a number that somebody typed in is no autoscaler's.
var people = []string{"kubectl", "oc", "k9s", "Lens", "Mozilla", "curl"}

// Scaled reports whether something scales the object in the member: its
// spec.replicas was last set through the scale subresource, and not by a person.
// The object has to have its managed fields.
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

// Manager is the field manager under which objects are applied to members.
const Manager = "flotilla"

// Applied reports whether Flotilla applied a field of a member's object. The path
// is one of managed fields, such as f:spec, f:replicas. The object has to have
// its managed fields.
func Applied(observed kinds.Object, path ...string) bool {
	return slices.ContainsFunc(managers(observed), func(entry map[string]any) bool {
		return Text(entry, "manager") == Manager && Text(entry, "operation") == string(metav1.ManagedFieldsOperationApply) &&
			Text(entry, "subresource") == "" && Value(Object(entry, "fieldsV1"), path...) != nil
	})
}

func managers(observed kinds.Object) []map[string]any {
	return Objects(observed.Object, "metadata", "managedFields")
}
