package native

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/rules"
)

const pullSecrets = "imagePullSecrets"

func serviceAccount() kinds.Rules {
	return kinds.Rules{Retain: retainServiceAccount, Retains: rules.Has(pullSecrets)}
}

// retainServiceAccount adds the image pull secrets that the member has to those
// of the template, as the list can only be applied as a whole. Other secrets of a
// service account are kept by server-side apply itself.
func retainServiceAccount(desired, observed kinds.Object) (kinds.Object, error) {
	want, have := rules.List(desired.Object, pullSecrets), rules.List(observed.Object, pullSecrets)
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
	err := unstructured.SetNestedSlice(out.Object, merged, pullSecrets)
	return out, err
}

func secret() kinds.Rules { return kinds.Rules{Retain: retainSecret, Retains: isTokenSecret} }

func isTokenSecret(desired kinds.Object) bool {
	return rules.Text(desired.Object, "type") == string(corev1.SecretTypeServiceAccountToken)
}

// retainSecret leaves out the data of a service account's token, which the member
// issued.
func retainSecret(desired, _ kinds.Object) (kinds.Object, error) {
	if !isTokenSecret(desired) {
		return desired, nil
	}
	return rules.Without(desired, "data"), nil
}
