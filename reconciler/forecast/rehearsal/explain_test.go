package rehearsal_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/explain"
)

func TestExplain(t *testing.T) {
	labels := map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"}
	web := func(namespace string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "uid", Labels: labels}}
	}
	all := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "all", Labels: labels}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu-1"}}},
	}}
	f := read(t, hub(t, web("app"), web("shop"), all))
	e, err := f.Explain("configmaps", "app", "web")
	if err != nil {
		t.Fatal(err)
	}
	text := e.Text(explain.TextOptions{})
	for _, part := range []string{"ConfigMap app/web (v1)", "what clusters report", "PropagationPolicy app/all", "eu-1"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if e.Delivery != nil || strings.Contains(text, canary) {
		t.Errorf("explanation:\n%s", text)
	}
	for _, tc := range []struct{ word, namespace, name, want string }{
		{"configmap", "", "web", "there are several: say which with -n: app, shop"},
		{"configmap", "app", "other", "nothing carries a ConfigMap other in namespace app, or it is not there"},
		{"configmap", "", "nothing", "nothing carries a ConfigMap nothing, or it is not there"},
		{"secret", "app", "web", "the control plane knows no kind secret"},
	} {
		if _, err := f.Explain(tc.word, tc.namespace, tc.name); err == nil || err.Error() != tc.want {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
