package execution_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/unifiedauth"
)

// authored is a fleet whose member applies as the author, and a template of the user alice.
type authored struct {
	*fleet
	users    map[string]client.Client
	binding  *rbacv1.RoleBinding
	template *corev1.ConfigMap
	placed   *workv1alpha2.ResourceBinding
}

// TestAuthorsInAMember walks an author's rights through a member: the member's own RBAC
// decides what is applied, by the rights that the author has on the control plane.
func TestAuthorsInAMember(t *testing.T) {
	t.Parallel()
	a := &authored{fleet: newFleet(t), users: map[string]client.Client{}}
	a.join(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *authored)
	}{
		{"what somebody applies whose rights the member does not know is refused", testForbidden},
		{"it is applied once the member has them", testGranted},
		{"as him, and not as the control plane", testAsHim},
		{"a change is refused once they are taken away, and applied when they are back", testRevoked},
		{"who is nobody in members applies nothing", testUnknown},
		{"nobody has names of the control plane's made there", testNames},
		{"who is renamed is another one, and takes over by a change", testRenamed},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, a) }) {
			return
		}
	}
}

// as returns a client of the hub that acts as a user.
func (a *authored) as(t *testing.T, name string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(a.hub.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: name}
	out, err := client.New(cfg, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bind grants a user the right to edit the namespace, and removes it from the user before.
func (a *authored) bind(t *testing.T, user string) {
	t.Helper()
	a.binding = &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if err := a.hub.Hub.Create(t.Context(), a.binding); err != nil {
		t.Fatal(err)
	}
}

// outcome waits until the latest generation of a Work is applied, or refused with a reason and
// words.
func (a *authored) outcome(t *testing.T, name, reason string, words ...string) {
	t.Helper()
	eventually(t, name+": "+reason, func(ctx context.Context) error {
		work := &workv1alpha1.Work{}
		if err := a.hub.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: name}, work); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.ObservedGeneration != work.Generation || c.Reason != reason {
			return fmt.Errorf("conditions of %s, by %s: %+v", name, work.Annotations[workv1alpha2.AppliedByAnnotation], work.Status.Conditions)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("%q is not in %s", word, c.Message)
			}
		}
		return nil
	})
}

func (a *authored) work() string { return workv1alpha2.WorkName("ConfigMap", "conf", "shop") }

// write changes the template as somebody, and its Work with it.
func (a *authored) write(t *testing.T, who client.Client, value string) {
	t.Helper()
	eventually(t, "the template is written", func(ctx context.Context) error {
		if err := a.hub.Hub.Get(ctx, client.ObjectKeyFromObject(a.template), a.template); err != nil {
			return err
		}
		a.template.Data = map[string]string{"value": value}
		return who.Update(ctx, a.template)
	})
	a.carry(t, a.placed, a.template)
}

// stands checks what the member has.
func (a *authored) stands(t *testing.T, value string) {
	t.Helper()
	there := &corev1.ConfigMap{}
	if err := a.edge.Get(t.Context(), client.ObjectKeyFromObject(a.template), there); err != nil || there.Data["value"] != value {
		t.Errorf("the member has %v, want %s: %v", there.Data, value, err)
	}
}

func testForbidden(t *testing.T, a *authored) {
	if err := a.hub.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	a.bind(t, "alice")
	a.users["alice"] = a.as(t, "alice")
	a.template = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "conf"}, Data: map[string]string{"value": "1"}}
	eventually(t, "alice makes a template", func(ctx context.Context) error { return a.users["alice"].Create(ctx, a.template) })
	if by := a.template.Annotations[workv1alpha2.AppliedByAnnotation]; by != `[{"user":"alice"}]` {
		t.Fatalf("applied by %q", by)
	}
	a.placed = a.place(t, a.template, 0)
	a.outcome(t, a.work(), workv1alpha1.WorkAccountForbiddenReason, "flotilla:user:alice", "cannot", "for alice who applied it")
	if err := a.edge.Get(t.Context(), client.ObjectKeyFromObject(a.template), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is in the member: %v", err)
	}
}

func testGranted(t *testing.T, a *authored) {
	a.hub.Loops(a.t, func(ctx context.Context, mgr ctrl.Manager) error {
		return unifiedauth.New(mgr.GetClient(), nobody{}, unifiedauth.Options{}).Register(ctx, mgr)
	})
	a.outcome(t, a.work(), workv1alpha1.WorkAppliedSuccessfulReason)
	a.stands(t, "1")
}

// testAsHim: in the member the user is bound by the name that users have there, in one namespace, and nobody in all.
func testAsHim(t *testing.T, a *authored) {
	var bindings rbacv1.RoleBindingList
	if err := a.edge.List(t.Context(), &bindings, client.InNamespace("shop")); err != nil || len(bindings.Items) != 1 {
		t.Fatal(bindings.Items, err)
	}
	if got, want := bindings.Items[0].Subjects[0].Name, "flotilla:user:alice"; got != want {
		t.Errorf("the member binds %s, want %s", got, want)
	}
	var everywhere rbacv1.ClusterRoleBindingList
	if err := a.edge.List(t.Context(), &everywhere); err != nil {
		t.Fatal(err)
	}
	for i := range everywhere.Items {
		for _, subject := range everywhere.Items[i].Subjects {
			if strings.HasPrefix(subject.Name, "flotilla:user:") {
				t.Errorf("%s gives %s rights everywhere", everywhere.Items[i].Name, subject.Name)
			}
		}
	}
}

func testRevoked(t *testing.T, a *authored) {
	if err := a.hub.Hub.Delete(t.Context(), a.binding); err != nil {
		t.Fatal(err)
	}
	a.unbound(t)
	a.write(t, a.hub.Hub, "2") // as an administrator; alice stays an author
	a.outcome(t, a.work(), workv1alpha1.WorkAccountForbiddenReason, "flotilla:user:alice")
	a.stands(t, "1")
	a.bind(t, "alice")
	a.outcome(t, a.work(), workv1alpha1.WorkAppliedSuccessfulReason)
	a.stands(t, "2")
}

// unbound waits until nobody has rights in the member's namespace, and the member's authorizer, which
// watches bindings, has seen that.
func (a *authored) unbound(t *testing.T) {
	t.Helper()
	eventually(t, "the member gives nobody rights", func(ctx context.Context) error {
		var bindings rbacv1.RoleBindingList
		if err := a.edge.List(ctx, &bindings, client.InNamespace("shop")); err != nil || len(bindings.Items) > 0 {
			return fmt.Errorf("%d bindings: %w", len(bindings.Items), err)
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "flotilla:user:alice",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "patch", Resource: "configmaps"},
		}}
		if err := a.edge.Create(ctx, review); err != nil || review.Status.Allowed {
			return fmt.Errorf("alice may: %v, %w", review.Status, err)
		}
		return nil
	})
}

// byHand creates a Work as a person would.
func (a *authored) byHand(t *testing.T, name, by, manifest string) {
	t.Helper()
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: name, Annotations: map[string]string{workv1alpha2.AppliedByAnnotation: by},
	}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	if err := a.hub.Hub.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
}

func testUnknown(t *testing.T, a *authored) {
	a.byHand(t, "unknown", `[{"user":"system:node:x"}]`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"unknown"}}`)
	a.outcome(t, "unknown", workv1alpha1.WorkUnknownAccountReason, "nobody in cluster eu-1 stands for system:node:x")
	a.byHand(t, "unreadable", "alice", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"unknown"}}`)
	a.outcome(t, "unreadable", workv1alpha1.WorkUnknownAccountReason, "cannot be read")
	if err := a.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "unknown"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is in the member: %v", err)
	}
}

func testNames(t *testing.T, a *authored) {
	a.byHand(t, "names", `[{"user":"alice"}]`, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"namespace":"shop","name":"x"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"flotilla:user:eve"}]}`)
	a.outcome(t, "names", workv1alpha1.WorkAppliedFailedReason, "begins with flotilla:")
}

func testRenamed(t *testing.T, a *authored) {
	if err := a.hub.Hub.Delete(t.Context(), a.binding); err != nil {
		t.Fatal(err)
	}
	a.unbound(t)
	a.bind(t, "alicia")
	a.users["alicia"] = a.as(t, "alicia")
	a.write(t, a.hub.Hub, "3")
	a.outcome(t, a.work(), workv1alpha1.WorkAccountForbiddenReason, "flotilla:user:alice")
	a.stands(t, "2")
	a.write(t, a.users["alicia"], "4")
	a.outcome(t, a.work(), workv1alpha1.WorkAppliedSuccessfulReason)
	a.stands(t, "4")
}
