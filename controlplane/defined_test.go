package controlplane_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// TestNoWarningOfWhatIsDefined: a policy that comes right behind the definition of its kind,
// as in one file, does not get the error that the kind is missing.
func TestNoWarningOfWhatIsDefined(t *testing.T) {
	env := shared.Env(t)
	heard := &listener{}
	config := rest.CopyConfig(env.Config)
	config.WarningHandlerWithContext = heard
	hub, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	policy := object(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: fish}
spec: {resourceSelectors: [{apiVersion: new.example/v1, kind: Fish}]}
`)
	policy.SetNamespace(env.Namespace(t))
	if err := hub.Create(t.Context(), policy.DeepCopy(), client.DryRunAll); err != nil { // has the server look at what it serves
		t.Fatal(err)
	}
	if len(heard.all()) != 1 {
		t.Errorf("warnings of what is not defined: %q", heard.all())
	}
	crd := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fish.new.example}
spec:
  group: new.example
  scope: Namespaced
  names: {plural: fish, kind: Fish}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	if err := hub.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "it is established", func(ctx context.Context) error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool {
			return c.(map[string]any)["type"] == "Established" && c.(map[string]any)["status"] == "True"
		}) {
			return errors.New("not established")
		}
		return nil
	})
	heard.heard = nil
	if err := hub.Create(t.Context(), policy.DeepCopy(), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if warnings := heard.all(); len(warnings) > 0 {
		t.Errorf("warnings of what is defined: %q", warnings)
	}
}
