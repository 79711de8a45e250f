package overview

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
)

// TestEveryWorkloadThatNoPolicyCarriesIsReported: of whatever kind it is, if the fleet knows its replicas.
func TestEveryWorkloadThatNoPolicyCarriesIsReported(t *testing.T) {
	defined := func(name string) client.Object {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	taught := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: "boats"}}
	taught.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "sea.example/v1", Kind: "Boat"}
	taught.Spec.Customizations.ReplicaResource = &configv1alpha1.CustomizationScript{LuaScript: "x"}
	for _, tc := range []struct {
		apiVersion, kind string
		definition       string // empty: it has none
		noted            bool
	}{
		{"apps/v1", "Deployment", "", true}, {"apps/v1", "StatefulSet", "", true}, {"apps/v1", "DaemonSet", "", true}, {"apps/v1", "ReplicaSet", "", true},
		{"batch/v1", "Job", "", true}, {"batch/v1", "CronJob", "", true}, {"v1", "Pod", "", true}, {"v1", "ReplicationController", "", true}, {"v1", "PersistentVolumeClaim", "", true},
		{"argoproj.io/v1alpha1", "Rollout", "rollouts.argoproj.io", true}, {"sea.example/v1", "Boat", "boats.sea.example", true},
		{"sea.example/v1", "Harbour", "harbours.sea.example", false}, {"v1", "ConfigMap", "", false},
	} {
		t.Run(tc.apiVersion+" "+tc.kind, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			obj.SetAPIVersion(tc.apiVersion)
			obj.SetKind(tc.kind)
			obj.SetNamespace("shop")
			obj.SetName("web")
			objects := []client.Object{obj, taught.DeepCopy()}
			if tc.definition != "" {
				objects = append(objects, defined(tc.definition))
			}
			// The fake keeps objects of kinds that it has no type of, and cannot list their metadata.
			listed := func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				some, partly := list.(*metav1.PartialObjectMetadataList)
				if !partly || tc.definition == "" || some.Kind != tc.kind+"List" {
					return hub.List(ctx, list, opts...)
				}
				some.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}}
				return nil
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{List: listed}).Build()
			found, err := surveyOf(t.Context(), hub, "", false, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			noted := slices.ContainsFunc(found.Notes, func(n situation.Note) bool {
				return n.Kind == tc.kind && n.Name == "web" && strings.HasPrefix(n.Message, "no policy carries it")
			})
			if diff := cmp.Diff(tc.noted, noted); diff != "" {
				t.Errorf("notes (-want +got):\n%s\n%v", diff, found.Notes)
			}
		})
	}
}
