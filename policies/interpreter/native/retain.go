package native

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// dropChanged leaves out the field at the path where the member has another
// value. Who changed it owns it by then, so leaving it out does not reset it;
// an equal value may stay, as leaving it out would.
func dropChanged(path ...string) func(desired, observed kinds.Object) (kinds.Object, error) {
	return func(desired, observed kinds.Object) (kinds.Object, error) {
		want, have := value(desired.Object, path...), value(observed.Object, path...)
		if want == nil || have == nil || equality.Semantic.DeepEqual(want, have) {
			return desired, nil
		}
		return without(desired, path...), nil
	}
}

func retainsReplicas(desired kinds.Object) bool {
	return desired.GetLabels()[workv1alpha2.RetainReplicasLabel] == workv1alpha2.RetainReplicasValue
}

// retainReplicas keeps the member's replicas where the template asks for it,
// as it does when something in the member scales it.
func retainReplicas(desired, observed kinds.Object) (kinds.Object, error) {
	if !retainsReplicas(desired) {
		return desired, nil
	}
	return dropChanged("spec", "replicas")(desired, observed)
}

// retainPod keeps where the pod runs and as whom.
func retainPod(desired, observed kinds.Object) (kinds.Object, error) {
	out, err := dropChanged("spec", "nodeName")(desired, observed)
	if err != nil {
		return nil, err
	}
	return dropChanged("spec", "serviceAccountName")(out, observed)
}

// retainServiceAccount keeps what the member adds to the lists of secrets.
// Image pull secrets can only be applied as a whole list.
func retainServiceAccount(desired, observed kinds.Object) (kinds.Object, error) {
	want, have := list(desired.Object, "imagePullSecrets"), list(observed.Object, "imagePullSecrets")
	merged := slices.Clone(want)
	for _, s := range have {
		if !slices.ContainsFunc(merged, func(m any) bool { return equality.Semantic.DeepEqual(m, s) }) {
			merged = append(merged, s)
		}
	}
	if len(want) == 0 || len(merged) == len(want) {
		return desired, nil
	}
	out := desired.DeepCopy()
	err := unstructured.SetNestedSlice(out.Object, merged, "imagePullSecrets")
	return out, err
}

func isTokenSecret(desired kinds.Object) bool {
	return text(desired.Object, "type") == string(corev1.SecretTypeServiceAccountToken)
}

// retainSecret keeps the token that the member issued.
func retainSecret(desired, _ kinds.Object) (kinds.Object, error) {
	if !isTokenSecret(desired) {
		return desired, nil
	}
	return without(desired, "data"), nil
}
