package overview

import (
	"context"
	"errors"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// testVersions: what is carried in another version than the control plane prefers is looked
// at in that one, and where a cluster serves it no more the trace says so.
func testVersions(t *testing.T, w *world) {
	install(t, w.env.Hub, "v1", "v2")
	install(t, w.east, "v1")
	boat := &unstructured.Unstructured{}
	boat.SetAPIVersion("sea.example/v1")
	boat.SetKind("Boat")
	boat.SetNamespace("shop")
	boat.SetName("ferry")
	policy := &policyv1alpha1.PropagationPolicy{}
	policy.Namespace, policy.Name = "shop", "boats"
	policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "sea.example/v1", Kind: "Boat"}}
	policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
	for _, obj := range []client.Object{boat, policy} {
		servertest.Eventually(t, "it is stored", func(ctx context.Context) error { return w.env.Hub.Create(ctx, obj) })
	}
	got := w.until(t, "trace boat/ferry -n shop", "yes")
	if !strings.Contains(got.Out, "Boat shop/ferry (sea.example/v2)") || strings.Contains(got.Out, "not looked at") {
		t.Errorf("a cluster that serves what is carried: %s", got)
	}
	install(t, w.east, "v3")
	w.until(t, "trace boat/ferry -n shop", "  east: Failed to apply all manifests (0/1): the member does not serve this kind: sea.example/v1, Kind=Boat")
}

// TestUnserved: a cluster that does not serve a kind is distinguished from one without the object.
func TestUnserved(t *testing.T) {
	boat := &unstructured.Unstructured{}
	boat.SetAPIVersion("sea.example/v1")
	boat.SetKind("Boat")
	resource := schema.GroupResource{Group: "sea.example", Resource: "boats"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"it does not serve it": {apierrors.NewGenericServerResponse(404, "GET", resource, "", "404 page not found", 0, true), "not looked at: cluster east does not serve Boat of sea.example/v1: flotilla api-resources -C east lists what it serves"},
		"it does not have it":  {apierrors.NewNotFound(resource, "ferry"), "it is not there"},
		"it does not answer":   {errors.New("no way"), "not looked at: no way"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memberOf(nil, unserved("east", boat, tc.err)).Error; got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhatWasSentInAnotherVersion: where the binding is of another version than the template
// as it is seen, a cluster's own Work says why it has nothing.
func TestWhatWasSentInAnotherVersion(t *testing.T) {
	boat := &unstructured.Unstructured{}
	boat.SetAPIVersion("sea.example/v2")
	boat.SetKind("Boat")
	b := &workv1alpha2.ResourceBinding{}
	b.Annotations = map[string]string{propagation.DigestAnnotation: "of another"}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "east"}}
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", AppliedMessage: "it refuses"}}
	refused := &workv1alpha1.Work{}
	refused.Namespace, refused.Name = workv1alpha2.ExecutionNamespace("east"), "ferry"
	refused.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Message: "it does not serve sea.example/v1"}}
	for name, tc := range map[string]struct {
		works []*workv1alpha1.Work
		want  string
	}{
		"its Work is refused":      {[]*workv1alpha1.Work{refused}, "it does not serve sea.example/v1"},
		"it has no Work":           {[]*workv1alpha1.Work{}, "not sent yet"},
		"its Work may not be read": {nil, "it refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := deliveriesOf(boat, b, tc.works, nil)[0].Message; got != tc.want {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
		})
	}
}

// install has a server serve boats in these versions alone, and store the first.
func install(t *testing.T, server client.Client, versions ...string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "boats.sea.example"
	servertest.Eventually(t, "boats are defined", func(ctx context.Context) error {
		err := client.IgnoreNotFound(server.Get(ctx, client.ObjectKeyFromObject(crd), crd))
		if err != nil {
			return err
		}
		crd.Spec.Group, crd.Spec.Scope = "sea.example", apiextensionsv1.NamespaceScoped
		crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Singular: "boat", Kind: "Boat", ListKind: "BoatList"}
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Served, crd.Spec.Versions[i].Storage = false, false
		}
		for i, version := range versions {
			crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: version, Served: true, Storage: i == 0,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			})
		}
		if crd.UID == "" {
			return server.Create(ctx, crd)
		}
		return server.Update(ctx, crd)
	})
}
