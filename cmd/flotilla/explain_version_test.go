package main

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// testVersions: what is carried in another version than the control plane prefers to show is
// explained in that one, unless the call names one.
func testVersions(t *testing.T, env *servertest.Env, ask asker) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "rafts.sea.example"}}
	crd.Spec.Group, crd.Spec.Scope = "sea.example", apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "rafts", Singular: "raft", Kind: "Raft", ListKind: "RaftList"}
	for _, version := range []string{"v1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
		})
	}
	raft := &unstructured.Unstructured{}
	raft.SetAPIVersion("sea.example/v1")
	raft.SetKind("Raft")
	raft.SetNamespace("shop")
	raft.SetName("ferry")
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rafts"}}
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "sea.example/v1", Kind: "Raft"}}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ferry-raft"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "sea.example/v1", Kind: "Raft", Namespace: "shop", Name: "ferry"}
	for _, obj := range []client.Object{crd, raft, policy, b} {
		servertest.Eventually(t, "it is stored", func(ctx context.Context) error { return env.Hub.Create(ctx, obj) })
	}
	for word, want := range map[string]string{
		"raft":                 "Raft shop/ferry (sea.example/v1)",
		"rafts.sea.example":    "Raft shop/ferry (sea.example/v1)",
		"rafts.v2.sea.example": "Raft shop/ferry (sea.example/v2)",
	} {
		code, out, errOut := ask(t, env.Kubeconfig, "", word+"/ferry", "-n", "shop")
		first, _, _ := strings.Cut(out, "\n")
		if code != 0 || errOut != "" || first != want {
			t.Errorf("%s: code %d, error %q, want %s:\n%s", word, code, errOut, want, out)
		}
		if other := strings.Contains(out, "it is sea.example/v2"); other != strings.HasSuffix(want, "v2)") {
			t.Errorf("%s: it is said to be selected as another version: %t\n%s", word, other, out)
		}
	}
}
