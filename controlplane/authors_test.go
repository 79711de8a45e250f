package controlplane_test

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane/servertest"
)

// acting returns clients of users by name, who all have a role in a namespace.
func acting(t *testing.T, env *servertest.Env, namespace, role string, names ...string) map[string]kubernetes.Interface {
	t.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "as-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	out := map[string]kubernetes.Interface{}
	for _, name := range names {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
		cfg := rest.CopyConfig(env.Config)
		cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
		out[name] = kubernetes.NewForConfigOrDie(cfg)
	}
	if err := env.Hub.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWhoScalesATemplate: replicas are content. Who may write all of a template and
// scales it answers for it from then on; who may do no more than that leaves it to who
// does.
func TestWhoScalesATemplate(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	scaler := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-scaler"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/scale"}}},
	}
	if err := env.Hub.Create(t.Context(), scaler); err != nil {
		t.Fatal(err)
	}
	remove(t, env.Hub, scaler)
	users := acting(t, env, namespace, "edit", "alice", "bob")
	users["carol"] = acting(t, env, namespace, scaler.Name, "carol")["carol"]
	users["admin"] = kubernetes.NewForConfigOrDie(env.Config)
	const alice, bob = `[{"user":"alice"}]`, `[{"user":"bob"}]`
	patch := func(who string, replicas int, dryRun ...string) func(t *testing.T, web string) error {
		return func(t *testing.T, web string) error {
			_, err := users[who].AppsV1().Deployments(namespace).Patch(t.Context(), web, types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{DryRun: dryRun}, "scale")
			return err
		}
	}
	update := func(t *testing.T, web string) error {
		scale, err := users["bob"].AppsV1().Deployments(namespace).GetScale(t.Context(), web, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for { // as a client does that is shown of a conflict
			scale.Spec.Replicas = 5
			_, err = users["bob"].AppsV1().Deployments(namespace).UpdateScale(t.Context(), web, scale, metav1.UpdateOptions{})
			if !apierrors.IsConflict(err) {
				return err
			}
			if scale, err = users["bob"].AppsV1().Deployments(namespace).GetScale(t.Context(), web, metav1.GetOptions{}); err != nil {
				return err
			}
		}
	}
	apply := func(t *testing.T, web string) error {
		_, err := users["bob"].AppsV1().Deployments(namespace).Patch(t.Context(), web, types.ApplyPatchType,
			[]byte(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"`+web+`"},"spec":{"replicas":5}}`), metav1.PatchOptions{FieldManager: "bob", Force: ptr.To(true)}, "scale")
		return err
	}
	for name, tc := range map[string]struct {
		by       string // who makes it
		scale    func(t *testing.T, web string) error
		want     string
		replicas int32
	}{
		"by who made it":                       {"alice", patch("alice", 5), alice, 5},
		"by another who may write it":          {"alice", patch("bob", 5), bob, 5},
		"by another, as it is":                 {"alice", patch("bob", 2), alice, 2},
		"by another, to see what comes of it":  {"alice", patch("bob", 5, metav1.DryRunAll), alice, 2},
		"by another, with a whole Scale":       {"alice", update, bob, 5},
		"by another, with server-side apply":   {"alice", apply, bob, 5},
		"by who may do nothing but scale":      {"alice", patch("carol", 5), alice, 5},
		"by an administrator":                  {"alice", patch("admin", 5), alice, 5},
		"an administrator's, by who may write": {"admin", patch("bob", 5), bob, 5},
		"an administrator's, by who may not":   {"admin", patch("carol", 5), "", 5},
	} {
		t.Run(name, func(t *testing.T) {
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
			web.Spec.Replicas, web.Spec.Selector = ptr.To[int32](2), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			web.Spec.Template.Labels = web.Spec.Selector.MatchLabels
			web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
			var err error
			poll(t, "roles take a moment", func() bool {
				var made *appsv1.Deployment
				if made, err = users[tc.by].AppsV1().Deployments(namespace).Create(t.Context(), web, metav1.CreateOptions{}); err == nil {
					web = made
				}
				return !apierrors.IsForbidden(err)
			})
			if err != nil {
				t.Fatal(err)
			}
			poll(t, "and so do those of others", func() bool { err = tc.scale(t, web.Name); return !apierrors.IsForbidden(err) })
			if err != nil {
				t.Fatal(err)
			}
			if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
				t.Fatal(err)
			}
			if by := web.Annotations["propagation.flotilla.io/applied-by"]; by != tc.want || *web.Spec.Replicas != tc.replicas {
				t.Errorf("%d replicas, applied by %q; want %d, %q", *web.Spec.Replicas, by, tc.replicas, tc.want)
			}
		})
	}
}

// TestWhoAddsAContainer: who may write no more than a part of a Pod answers for it, beside
// who did before; what an administrator made is not without an author then.
func TestWhoAddsAContainer(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	debugger := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-debugger"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get", "update", "patch"}, APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}}},
	}
	if err := env.Hub.Create(t.Context(), debugger); err != nil {
		t.Fatal(err)
	}
	remove(t, env.Hub, debugger)
	users := acting(t, env, namespace, "edit", "alice")
	users["carol"] = acting(t, env, namespace, debugger.Name, "carol")["carol"]
	users["admin"] = kubernetes.NewForConfigOrDie(env.Config)
	for by, want := range map[string]string{"admin": `[{"user":"carol"}]`, "alice": `[{"user":"alice"},{"user":"carol"}]`} {
		t.Run("one of "+by, func(t *testing.T) {
			web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
			web.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
			web.Spec.AutomountServiceAccountToken = ptr.To(false)
			made := web
			var err error
			poll(t, "roles take a moment", func() bool {
				made, err = users[by].CoreV1().Pods(namespace).Create(t.Context(), web, metav1.CreateOptions{})
				return err == nil
			})
			poll(t, "and so do those of others", func() bool {
				_, err = users["carol"].CoreV1().Pods(namespace).Patch(t.Context(), made.Name, types.StrategicMergePatchType,
					[]byte(`{"spec":{"ephemeralContainers":[{"name":"shell","image":"shell"}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
				return err == nil
			})
			if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
				t.Fatal(err)
			}
			if got := made.Annotations["propagation.flotilla.io/applied-by"]; got != want || len(made.Spec.EphemeralContainers) != 1 {
				t.Errorf("%d containers more, applied by %q; want 1, %q", len(made.Spec.EphemeralContainers), got, want)
			}
		})
	}
}

// TestNamesByWhichMembersKnowUsers: nobody but administrators has them in what he
// propagates, by any verb.
func TestNamesByWhichMembersKnowUsers(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	alice := acting(t, env, namespace, "admin", "alice")["alice"].RbacV1()
	admin := kubernetes.NewForConfigOrDie(env.Config).RbacV1()
	edit := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}
	subject := func(kind, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
	}
	team := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "team"}, RoleRef: edit, Subjects: subject("User", "al")}
	poll(t, "alice makes a binding", func() bool {
		_, err := alice.RoleBindings(namespace).Create(t.Context(), team, metav1.CreateOptions{})
		return err == nil
	})
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	made := metav1.CreateOptions{}
	for name, try := range map[string]func() error{
		"a binding of that name": func() error {
			_, err := alice.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: named("flotilla:team:29f624cb"), RoleRef: edit, Subjects: subject("User", "al")}, made)
			return err
		},
		"one that the server names so": func() error {
			_, err := alice.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{GenerateName: "flotilla:"}, RoleRef: edit, Subjects: subject("User", "al")}, made)
			return err
		},
		"a role of that name": func() error {
			_, err := alice.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: named("flotilla:looker")}, made)
			return err
		},
		"a binding of an author": func() error {
			_, err := alice.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: named("x"), RoleRef: edit, Subjects: subject("User", "flotilla:user:eve")}, made)
			return err
		},
		"one that becomes an author's": func() error {
			_, err := alice.RoleBindings(namespace).Patch(t.Context(), "team", types.JSONPatchType, []byte(`[{"op":"replace","path":"/subjects/0/name","value":"flotilla:user:eve"}]`), metav1.PatchOptions{})
			return err
		},
		"the masters, by server-side apply": func() error {
			_, err := alice.RoleBindings(namespace).Patch(t.Context(), "y", types.ApplyPatchType, []byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"y"},
				"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"flotilla:masters"}]}`), metav1.PatchOptions{FieldManager: "x"})
			return err
		},
	} {
		if err := try(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "begins with flotilla:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: named("flotilla:of-an-administrator"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"flotilla:user:al"}}}}
	if _, err := admin.ClusterRoles().Create(t.Context(), role, made); err != nil {
		t.Errorf("an administrator's: %v", err)
	}
	remove(t, env.Hub, role)
}
