package controlplane_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// thirteen is a policy that refuses 13 replicas in a namespace.
func thirteen(t *testing.T, env *servertest.Env, namespace string) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments/scale"}},
		},
	}}}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.spec.replicas != 13"}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = namespace, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace},
	}}
	for _, obj := range []client.Object{policy, binding} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		remove(t, env.Hub, obj)
	}
}

// TestWhoScalesInVain: what is refused makes nobody the author of what somebody else
// applied.
func TestWhoScalesInVain(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	thirteen(t, env, namespace)
	bob := acting(t, env, namespace, "edit", "bob")["bob"].AppsV1().Deployments(namespace)
	admin := kubernetes.NewForConfigOrDie(env.Config).AppsV1().Deployments(namespace)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	web.Spec.Replicas, web.Spec.Selector = ptr.To[int32](2), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	web.Spec.Template.Labels = web.Spec.Selector.MatchLabels
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	first, err := admin.Create(t.Context(), web, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	second := first.DeepCopy()
	second.Labels = map[string]string{"since": "then"}
	if _, err := admin.Update(t.Context(), second, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll(t, "bob gets his role", func() bool {
		_, err := bob.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "scale")
		return err == nil
	})
	scale := func(replicas int32, change func(*autoscalingv1.Scale), dryRun ...string) error {
		s := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
		if change != nil {
			change(s)
		}
		_, err := bob.UpdateScale(t.Context(), "web", s, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
	poll(t, "the policy is in force", func() bool { return scale(13, nil, metav1.DryRunAll) != nil })
	for name, tc := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"less than none":               {scale(-5, nil), apierrors.IsInvalid},
		"of a state that is over":      {scale(5, func(s *autoscalingv1.Scale) { s.ResourceVersion = first.ResourceVersion }), apierrors.IsConflict},
		"of one that is gone":          {scale(5, func(s *autoscalingv1.Scale) { s.UID = "gone" }), apierrors.IsConflict},
		"what a policy does not allow": {scale(13, nil), apierrors.IsInvalid},
		"to see what comes of it":      {scale(5, nil, metav1.DryRunAll), func(err error) bool { return err == nil }},
	} {
		if !tc.is(tc.err) {
			t.Errorf("%s: %v", name, tc.err)
		}
	}
	author := func() string {
		now, err := admin.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return now.Annotations["propagation.flotilla.io/applied-by"]
	}
	if by := author(); by != "" {
		t.Errorf("it is applied by %q", by)
	}
	if err := scale(5, nil); err != nil || author() != `[{"user":"bob"}]` {
		t.Errorf("what is not refused makes bob its author: %q, %v", author(), err)
	}
}
