package aggregated

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

const storedWork = `{"apiVersion":"work.karmada.io/v1alpha1","kind":"Work","metadata":{"name":"w","namespace":"karmada-es-eu-1",` +
	`"labels":{"work.karmada.io/permanent-id":"1"},"annotations":{"work.karmada.io/conflict-resolution":"abort","own":"2"},` +
	`"finalizers":["karmada.io/execution-controller"]},` +
	`"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}]}},` +
	`"status":{"conditions":[{"type":"Applied","status":"True","reason":"AppliedSuccessful","message":"done","lastTransitionTime":null}],` +
	`"manifestStatuses":[{"identifier":{"ordinal":0,"group":"apps","version":"v1","kind":"ConfigMap","resource":"","namespace":"shop","name":"c"},"health":"Healthy"}]}}`

const storedBinding = `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding","metadata":{"name":"b","namespace":"shop",` +
	`"labels":{"resourcebinding.karmada.io/permanent-id":"1"}},` +
	`"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"d"},"clusters":[{"name":"eu-1","replicas":2}]},` +
	`"status":{"conditions":[{"type":"Scheduled","status":"True","reason":"Success","message":"done","lastTransitionTime":null}],` +
	`"aggregatedStatus":[{"clusterName":"eu-1","applied":true,"appliedMessage":"m","health":"Healthy"}]}}`

// Decoded objects have the same content, and share the memory of the strings that all
// objects of the kind have in common.
func TestTheStoreKeepsCommonTextsOnce(t *testing.T) {
	kinds := NewKinds(Options{})
	cases := map[string]struct {
		stored string
		texts  func(runtime.Object) []string
	}{
		"a work": {storedWork, func(obj runtime.Object) []string {
			w := obj.(*workv1alpha1.Work)
			condition, manifest := w.Status.Conditions[0], w.Status.ManifestStatuses[0]
			return append(keys(w.Labels, w.Annotations),
				w.Namespace, w.Finalizers[0], w.Annotations["work.karmada.io/conflict-resolution"],
				condition.Type, string(condition.Status), condition.Reason, condition.Message,
				manifest.Identifier.Group, manifest.Identifier.Version, manifest.Identifier.Kind, manifest.Identifier.Namespace, string(manifest.Health))
		}},
		"a binding": {storedBinding, func(obj runtime.Object) []string {
			b := obj.(*workv1alpha2.ResourceBinding)
			condition, item := b.Status.Conditions[0], b.Status.AggregatedStatus[0]
			return append(keys(b.Labels), b.Namespace, b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.Clusters[0].Name,
				condition.Type, condition.Reason, item.ClusterName, item.AppliedMessage, string(item.Health))
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plain, err := runtime.Decode(kinds.StorageCodec.(lean).Codec, []byte(c.stored))
			if err != nil {
				t.Fatal(err)
			}
			var decoded [2]runtime.Object
			for i := range decoded {
				if decoded[i], err = runtime.Decode(kinds.StorageCodec, []byte(c.stored)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plain, decoded[i]); diff != "" {
					t.Errorf("the object changed (-want +got):\n%s", diff)
				}
			}
			at := map[*byte]string{}
			for _, text := range c.texts(decoded[0]) {
				at[unsafe.StringData(text)] = text
			}
			for _, text := range c.texts(decoded[1]) {
				if _, same := at[unsafe.StringData(text)]; !same {
					t.Errorf("%q is in memory twice", text)
				}
			}
		})
	}
}

func keys(all ...map[string]string) []string {
	var out []string
	for _, m := range all {
		for key := range m {
			out = append(out, key)
		}
	}
	return out
}
