package admission

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func TestClaiming(t *testing.T) {
	plugin := NewClaiming(func(_ context.Context, gvk schema.GroupVersionKind, obj metav1.Object) (propagation.Claim, bool) {
		if gvk.Kind != "ConfigMap" || obj.GetLabels()["skip"] != "" {
			return propagation.Claim{}, false
		}
		return propagation.ClaimOf(&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{
			Name: "p", Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"},
		}}), true
	})
	for name, tc := range map[string]struct{ obj, subresource, want string }{
		"a template is marked": {
			obj:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}",
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id}, annotations: {clusterpropagationpolicy.karmada.io/name: p}}}",
		},
		"what it says already stays": {
			obj:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b, clusterpropagationpolicy.karmada.io/permanent-id: theirs}, annotations: {c: d}}}",
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: b, clusterpropagationpolicy.karmada.io/permanent-id: id}, annotations: {c: d, clusterpropagationpolicy.karmada.io/name: p}}}",
		},
		"what no policy carries is left alone":          {obj: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {skip: x}}}"},
		"what has no name yet is left alone":            {obj: "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: c-}}"},
		"what is made beneath an object is no template": {obj: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", subresource: "eviction"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.obj
			}
			obj := parse(t, tc.obj)
			if err := plugin.Admit(t.Context(), request(obj, nil, "configmaps", tc.subresource), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, obj.Object); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
		})
	}
}
