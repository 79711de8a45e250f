package reach

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Misnamed is propagation.Misnamed among the templates that a policy may carry: those of its namespace, for one that has one.
// Nothing is quoted of a policy, or suggested of a template, with text of a Secret.
func (f Finder) Misnamed(ctx context.Context, policy policyv1alpha1.Policy) string {
	if policy.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] != "" {
		return ""
	}
	return propagation.Misnamed(policy.PropagationSpec().ResourceSelectors, func(of policyv1alpha1.ResourceSelector, yield func(selector.Resource) bool) {
		more := true
		// What cannot be listed has no suggestions, which are a courtesy.
		_ = f.Templates.List(ctx, schema.FromAPIVersionAndKind(of.APIVersion, of.Kind), policy.GetNamespace(), func(obj *unstructured.Unstructured) {
			if more && obj.GetAnnotations()[gitopsv1alpha1.HoldsSecretsAnnotation] == "" {
				more = yield(selector.ResourceOf(obj))
			}
		})
	})
}
