package overview

import (
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// as is a world of a user of the control plane who has a ClusterRole in one namespace.
func as(t *testing.T, env *servertest.Env, user, role, namespace string) *world {
	t.Helper()
	grant := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	if err := env.Hub.Create(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	return &world{env: &servertest.Env{Kubeconfig: kubeconfig}, cache: t.TempDir()}
}

// TestWhatATenantSees: what he may read is shown, and what he may not is noted.
func TestWhatATenantSees(t *testing.T) {
	env := hubs.Env(t)
	namespace := env.Namespace(t)
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-deployment", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "6f1c"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "web"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 1}, {Name: "west", Replicas: 1}},
		},
	}
	propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "7a2d"},
	}}).Set(binding)
	for _, obj := range []client.Object{
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: pods},
		},
		binding,
	} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "east", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	if err := env.Hub.Status().Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	w := as(t, env, "tenant", "view", namespace)
	for name, line := range map[string]string{
		"tenant-tree": "tree deployment/web", "tenant-tree-binding": "tree rb/web-deployment --compact", "tenant-tree-namespace": "tree namespace/NS",
		"tenant-tree-json": "tree deployment/web -o json",
		"tenant-events":    "events", "tenant-events-nope": "events --for deployment/nope", "tenant-events-east": "events -C east",
	} {
		result := w.call(t.Context(), strings.ReplaceAll(line, "NS", namespace)+" -n "+namespace)
		golden(t, name+".txt", strings.ReplaceAll(result.String(), namespace, "NS"))
	}
	gate := w.call(t.Context(), "status --check -n "+namespace)
	binding.Status.AggregatedStatus = append(binding.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: "west", Applied: true, Health: workv1alpha2.ResourceHealthy})
	if err := env.Hub.Status().Update(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	golden(t, "tenant-status.txt", strings.ReplaceAll(gate.String()+w.call(t.Context(), "status --check -n "+namespace).String(), namespace, "NS"))
	for line, want := range map[string][]string{
		"trace deployment/web":    {"ResourceBinding NS/web-deployment", "east", "yes      Healthy", "You may not read Works: ", "not looked at: "},
		"trace rb/web-deployment": {"Deployment NS/web", "east", "You may not read Works: "},
		"trace namespace/NS":      {"Namespace NS", "You may not read Works: "},
	} {
		result := w.call(t.Context(), strings.ReplaceAll(line, "NS", namespace)+" -n "+namespace)
		if result.Code != 0 {
			t.Errorf("%s: %s", line, result)
		}
		for _, part := range want {
			if !strings.Contains(strings.ReplaceAll(result.Out, namespace, "NS"), part) {
				t.Errorf("%s: %s\nwant it to say %q", line, result, part)
			}
		}
	}
}
