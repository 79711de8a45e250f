package customization_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/customization"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// TestRecorded: a kind that webhooks report is taken for what they answered last.
func TestRecorded(t *testing.T) {
	hook := func(name, kind string) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
		return &configv1alpha1.ResourceInterpreterWebhookConfiguration{Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name: name,
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretReplica},
				Rule:       configv1alpha1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"v1"}, Kinds: []string{kind}},
			}},
		}}}
	}
	bound := &workv1alpha2.ResourceBinding{}
	bound.Spec.Replicas = 6
	type answer struct {
		Replicas int32
		Known    bool
		Err      string
	}
	for name, tc := range map[string]struct {
		hook    *configv1alpha1.ResourceInterpreterWebhookConfiguration
		binding workv1alpha2.Binding
		want    answer
	}{
		"it has said it":                 {hook("a.example.io", "Machine"), bound, answer{Replicas: 6, Known: true}},
		"it has yet to say it":           {hook("a.example.io", "Machine"), nil, answer{Known: true, Err: "replicas of Machine : waits for the answer of webhook a.example.io"}},
		"it is asked about every kind":   {hook("a.example.io", "*"), bound, answer{Replicas: 6, Known: true}},
		"it is asked about another kind": {hook("a.example.io", "Engine"), bound, answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.io/v1", "kind": "Machine"}}
			layer := customization.Recorded([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{tc.hook}, obj.GroupVersionKind(), tc.binding)
			var got answer
			var err error
			got.Replicas, _, got.Known, err = customization.NewStack(lua.New(lua.Options{}), nil).With(layer).Replicas(obj)
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
