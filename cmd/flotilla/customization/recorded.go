package customization

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters/webhook"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Recorded returns a layer that answers instead of webhooks, for one template, with what they
// answered when its binding was created. Without a binding their answer is pending. It does
// not call them.
func Recorded(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration, of schema.GroupVersionKind, b workv1alpha2.Binding) kinds.Layer {
	var rules kinds.Rules
	if name := webhook.Asked(configurations, of, configv1alpha1.InterpreterOperationInterpretReplica); name != "" {
		rules.Replicas = func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) {
			if b == nil {
				return 0, nil, &kinds.Pending{Of: "webhook " + name}
			}
			return b.BindingSpec().Replicas, b.BindingSpec().ReplicaRequirements.DeepCopy(), nil
		}
	}
	if name := webhook.Asked(configurations, of, configv1alpha1.InterpreterOperationInterpretComponent); name != "" {
		rules.Components = func(kinds.Object) ([]workv1alpha2.Component, error) {
			if b == nil {
				return nil, &kinds.Pending{Of: "webhook " + name}
			}
			return b.BindingSpec().DeepCopy().Components, nil
		}
	}
	return kinds.Table{of: rules}
}
